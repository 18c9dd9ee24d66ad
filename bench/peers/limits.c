/*
 * What the machine can do: the kernels of trialscan in C, and reading files with nothing but read().
 *
 *   cc -O3 -march=native -pthread limits.c -o limits -lm
 *   limits read DIR THREADS     reads every file under DIR; prints the bytes
 *   limits                      answers requests, a line each, words separated by tabs:
 *
 *     crc32c MS FILE LENGTH          exclusive or of the checksums of consecutive stretches
 *     records MS FILE LENGTH         how many TFRecords with payloads of LENGTH bytes have both checksums right
 *     moments MS FILE DTYPE          the 18 reductions, in trialscan's order
 *     meanstd MS FILE DTYPE          mean and std
 *     minmax MS FILE DTYPE           min and max
 *     allclose MS A B RTOL ATOL      how many elements of float32 are not close
 *     read MS DIR THREADS            bytes read
 *
 * The work is repeated for at least MS milliseconds. The answer: the median of one run in milliseconds, then the numbers.
 * Whatever can't be had answers "error" and why.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The sums may be taken in any order, as vectors need it; not so where NaN and infinity are compared. */
#if defined(__GNUC__) && !defined(__clang__)
#define ANY_ORDER __attribute__((optimize("O3", "fast-math")))
#else
#define ANY_ORDER
#endif

#define MAX_ANSWERS 18

static void fail(const char *why) {
  printf("error\t%s\n", why);
  fflush(stdout);
}

/* ------------------------------------------------------------------------------------------------------- CRC-32C */

#if defined(__x86_64__) && defined(__SSE4_2__)
#define HAS_CRC 1
#include <nmmintrin.h>

/* One stretch of each length a lane: three lanes keep the instruction, three cycles long, busy in every cycle. */
enum { LONG_LANE = 8192, SHORT_LANE = 256 };

/* What becomes of a register behind LANE zero bytes, a table for each of its bytes. */
static uint32_t long_shift[4][256], short_shift[4][256];

static void make_shift(uint32_t table[4][256], size_t lane) {
  uint32_t bits[32];
  for (int bit = 0; bit < 32; bit++) {
    uint64_t crc = 1u << bit;
    for (size_t at = 0; at < lane; at += 8) crc = _mm_crc32_u64(crc, 0);
    bits[bit] = (uint32_t)crc;
  }
  for (int byte = 0; byte < 4; byte++)
    for (int value = 0; value < 256; value++) {
      uint32_t crc = 0;
      for (int bit = 0; bit < 8; bit++)
        if (value >> bit & 1) crc ^= bits[8 * byte + bit];
      table[byte][value] = crc;
    }
}

static inline uint64_t shifted(uint32_t table[4][256], uint32_t crc) {
  return table[0][crc & 255] ^ table[1][crc >> 8 & 255] ^ table[2][crc >> 16 & 255] ^ table[3][crc >> 24];
}

static inline uint64_t word(const uint8_t *p) {
  uint64_t value;
  memcpy(&value, p, 8);
  return value;
}

static inline uint64_t three_lanes(uint64_t crc, const uint8_t *p, size_t lane, uint32_t table[4][256]) {
  uint64_t second = 0, third = 0;
  for (const uint8_t *end = p + lane; p < end; p += 8) {
    crc = _mm_crc32_u64(crc, word(p));
    second = _mm_crc32_u64(second, word(p + lane));
    third = _mm_crc32_u64(third, word(p + 2 * lane));
  }
  crc = shifted(table, (uint32_t)crc) ^ second;
  return shifted(table, (uint32_t)crc) ^ third;
}

static uint32_t crc32c(const uint8_t *p, size_t length) {
  uint64_t crc = 0xffffffff;
  for (; length >= 3 * LONG_LANE; p += 3 * LONG_LANE, length -= 3 * LONG_LANE)
    crc = three_lanes(crc, p, LONG_LANE, long_shift);
  for (; length >= 3 * SHORT_LANE; p += 3 * SHORT_LANE, length -= 3 * SHORT_LANE)
    crc = three_lanes(crc, p, SHORT_LANE, short_shift);
  for (; length >= 8; p += 8, length -= 8) crc = _mm_crc32_u64(crc, word(p));
  for (; length > 0; p++, length--) crc = _mm_crc32_u8((uint32_t)crc, *p);
  return (uint32_t)crc ^ 0xffffffff;
}

static uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8; }
#endif

/* ------------------------------------------------------------------------------------------------------- moments */

/* All at once, in sums of doubles about a pilot; what follows from what is derived as trialscan derives it. */
#define MOMENTS(NAME, T)                                                                                              \
  ANY_ORDER static void NAME(const T *x, size_t count, double *out) {                                                 \
    const double pilot = x[0];                                                                                        \
    T min = x[0], max = x[0], min_abs = x[0] < 0 ? -x[0] : x[0];                                                      \
    double s = 0, q = 0, sum_abs = 0, prod = 1;                                                                       \
    size_t zeros = 0;                                                                                                 \
    for (size_t i = 0; i < count; i++) {                                                                              \
      const T v = x[i], a = v < 0 ? -v : v;                                                                           \
      const double d = (double)v - pilot;                                                                             \
      min = v < min ? v : min;                                                                                        \
      max = v > max ? v : max;                                                                                        \
      min_abs = a < min_abs ? a : min_abs;                                                                            \
      s += d;                                                                                                         \
      q += d * d;                                                                                                     \
      sum_abs += a;                                                                                                   \
      prod *= v;                                                                                                      \
      zeros += v == 0;                                                                                                \
    }                                                                                                                 \
    const double n = count, sum = s + n * pilot, mean = sum / n, variance = (q - s * s / n) / n;                      \
    const double squares = q + pilot * (2 * s + n * pilot), mean_abs = sum_abs / n;                                   \
    const double variance_abs = min >= 0 || max <= 0 ? variance : squares / n - mean_abs * mean_abs;                  \
    const double max_abs = max > -min ? max : -min;                                                                   \
    const double numbers[] = {min, max, mean, sqrt(variance), variance, sum, zeros ? 0 : prod, sum_abs,               \
                              sqrt(squares), min_abs, max_abs, mean_abs, sqrt(variance_abs), variance_abs,            \
                              sum_abs, fabs(zeros ? 0 : prod), sum_abs, sqrt(squares)};                               \
    memcpy(out, numbers, sizeof numbers);                                                                             \
  }
MOMENTS(moments_f32, float)
MOMENTS(moments_f64, double)

#define MEANSTD(NAME, T)                                                                                              \
  ANY_ORDER static void NAME(const T *x, size_t count, double *out) {                                                 \
    const double pilot = x[0];                                                                                        \
    double s = 0, q = 0;                                                                                              \
    for (size_t i = 0; i < count; i++) {                                                                              \
      const double d = (double)x[i] - pilot;                                                                          \
      s += d;                                                                                                         \
      q += d * d;                                                                                                     \
    }                                                                                                                 \
    out[0] = pilot + s / (double)count;                                                                               \
    out[1] = sqrt((q - s * s / (double)count) / (double)count);                                                       \
  }
MEANSTD(meanstd_f32, float)
MEANSTD(meanstd_f64, double)

#define MINMAX(NAME, T)                                                                                               \
  ANY_ORDER static void NAME(const T *x, size_t count, double *out) {                                                 \
    T min = x[0], max = x[0];                                                                                         \
    for (size_t i = 0; i < count; i++) {                                                                              \
      min = x[i] < min ? x[i] : min;                                                                                  \
      max = x[i] > max ? x[i] : max;                                                                                  \
    }                                                                                                                 \
    out[0] = min;                                                                                                     \
    out[1] = max;                                                                                                     \
  }
MINMAX(minmax_f32, float)
MINMAX(minmax_f64, double)

static size_t count_not_close(const float *a, const float *b, size_t count, float rtol, float atol) {
  uint32_t apart = 0;
  for (size_t i = 0; i < count; i++) {
    const float size = fabsf(b[i]);
    const int within = (fabsf(a[i] - b[i]) <= atol + rtol * size) & (size < INFINITY);
    apart += !(within | (a[i] == b[i]));
  }
  return apart;
}

/* --------------------------------------------------------------------------------------------------------- files */

struct bytes {
  char path[4096];
  uint8_t *data;
  size_t length;
};

/* Two inputs are held, the last ones that were asked for. */
static struct bytes loaded[2];

static struct bytes *load(int slot, const char *path) {
  struct bytes *file = &loaded[slot];
  if (file->data != NULL && strcmp(file->path, path) == 0) return file;
  free(file->data);
  file->data = NULL;
  struct stat about;
  const int fd = open(path, O_RDONLY);
  if (fd < 0 || fstat(fd, &about) != 0) return NULL;
  file->length = (size_t)about.st_size;
  if (posix_memalign((void **)&file->data, 4096, file->length + 4096) != 0) return NULL;
  for (size_t at = 0; at < file->length;) {
    const ssize_t got = read(fd, file->data + at, file->length - at);
    if (got <= 0) return NULL;
    at += (size_t)got;
  }
  close(fd);
  snprintf(file->path, sizeof file->path, "%s", path);
  return file;
}

/* Files as pieces of at most PIECE bytes, so that few large ones keep all threads busy. */
enum { PIECE = 8 << 20, READ_AT_ONCE = 1 << 20, MAX_THREADS = 64 };

struct piece {
  char *path;
  off_t offset;
};

static struct piece *pieces;
static size_t piece_count, piece_capacity;
static atomic_size_t next_piece, bytes_read;

static void add_pieces(const char *path, off_t length) {
  char *kept = strdup(path);
  for (off_t offset = 0; offset < length; offset += PIECE) {
    if (piece_count == piece_capacity) {
      piece_capacity = piece_capacity == 0 ? 1024 : 2 * piece_capacity;
      pieces = realloc(pieces, piece_capacity * sizeof *pieces);
    }
    pieces[piece_count++] = (struct piece){kept, offset};
  }
}

static void list(const char *dir) {
  DIR *entries = opendir(dir);
  if (entries == NULL) return;
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    char path[4096];
    struct stat about;
    snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
    if (stat(path, &about) != 0) continue;
    if (S_ISDIR(about.st_mode)) list(path);
    else add_pieces(path, about.st_size);
  }
  closedir(entries);
}

static void *read_pieces(void *unused) {
  (void)unused;
  /* Of a page: Linux copies up to five times as slowly to an address that lies a little above the source's, modulo 4 KiB. */
  uint8_t *buffer = NULL;
  if (posix_memalign((void **)&buffer, 4096, READ_AT_ONCE) != 0) return NULL;
  for (size_t i; (i = atomic_fetch_add(&next_piece, 1)) < piece_count;) {
    const int fd = open(pieces[i].path, O_RDONLY);
    for (off_t at = 0; at < PIECE;) {
      const ssize_t got = pread(fd, buffer, READ_AT_ONCE, pieces[i].offset + at);
      if (got <= 0) break;
      at += got;
      atomic_fetch_add(&bytes_read, (size_t)got);
    }
    close(fd);
  }
  free(buffer);
  return NULL;
}

/* Listing included, as it is in a scan. */
static size_t read_all(const char *dir, int threads) {
  pthread_t started[MAX_THREADS];
  piece_count = 0;
  next_piece = bytes_read = 0;
  list(dir);
  for (int i = 1; i < threads; i++) pthread_create(&started[i], NULL, read_pieces, NULL);
  read_pieces(NULL);
  for (int i = 1; i < threads; i++) pthread_join(started[i], NULL);
  for (size_t i = 0; i < piece_count; i++)
    if (pieces[i].offset == 0) free(pieces[i].path);
  return bytes_read;
}

/* ------------------------------------------------------------------------------------------------------ requests */

enum { MAX_WORDS = 8, MAX_SAMPLES = 4096 };

struct request {
  char *words[MAX_WORDS];
  int count;
};

/* Does the work once. Gives how many numbers it wrote, or says in `why` what it lacks. */
static int run(const struct request *request, double *out, const char **why) {
  const char *kernel = request->words[0];
  if (request->count < 4) return *why = "too few words", 0;
  if (strcmp(kernel, "read") == 0) {
    const int threads = atoi(request->words[3]);
    if (threads < 1 || threads > MAX_THREADS) return *why = "threads", 0;
    out[0] = (double)read_all(request->words[2], threads);
    return 1;
  }
  const struct bytes *file = load(0, request->words[2]);
  if (file == NULL) return *why = "no such file", 0;
  if (strcmp(kernel, "crc32c") == 0 || strcmp(kernel, "records") == 0) {
#ifdef HAS_CRC
    const size_t length = (size_t)atoll(request->words[3]);
    uint32_t all = 0, right = 0;
    if (kernel[0] == 'c') {
      for (size_t at = 0; at + length <= file->length; at += length) all ^= crc32c(file->data + at, length);
    } else {
      for (const uint8_t *p = file->data; p + length + 16 <= file->data + file->length; p += length + 16) {
        uint32_t stored[2];
        memcpy(stored, p + 8, 4);
        memcpy(stored + 1, p + 12 + length, 4);
        right += (stored[0] == masked(crc32c(p, 8))) & (stored[1] == masked(crc32c(p + 12, length)));
      }
    }
    out[0] = kernel[0] == 'c' ? all : right;
    return 1;
#else
    return *why = "no crc32 instruction", 0;
#endif
  }
  if (strcmp(kernel, "allclose") == 0) {
    if (request->count < 6) return *why = "too few words", 0;
    const struct bytes *other = load(1, request->words[3]);
    if (other == NULL || other->length != file->length) return *why = "no such file", 0;
    const float rtol = strtof(request->words[4], NULL), atol = strtof(request->words[5], NULL);
    out[0] = (double)count_not_close((float *)file->data, (float *)other->data, file->length / 4, rtol, atol);
    return 1;
  }
  const int wide = strcmp(request->words[3], "float64") == 0;
  if (!wide && strcmp(request->words[3], "float32") != 0) return *why = "dtype", 0;
  const size_t count = file->length / (wide ? 8 : 4);
  const void *x = file->data;
  if (strcmp(kernel, "moments") == 0) return (wide ? moments_f64(x, count, out) : moments_f32(x, count, out)), 18;
  if (strcmp(kernel, "meanstd") == 0) return (wide ? meanstd_f64(x, count, out) : meanstd_f32(x, count, out)), 2;
  if (strcmp(kernel, "minmax") == 0) return (wide ? minmax_f64(x, count, out) : minmax_f32(x, count, out)), 2;
  return *why = "no such kernel", 0;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void answer(const struct request *request) {
  static double samples[MAX_SAMPLES];
  double out[MAX_ANSWERS];
  const char *why = NULL;
  const double turn = request->count > 1 ? atof(request->words[1]) : 0;
  const int numbers = run(request, out, &why);
  if (numbers == 0) return fail(why);
  /* Samples that the clock can see: at least a tenth of a millisecond. */
  const double first = now();
  run(request, out, &why);
  const double once = now() - first;
  const int repeats = once >= 0.1 ? 1 : (int)(0.1 / (once > 1e-5 ? once : 1e-5)) + 1;
  const double start = now();
  int count = 0;
  do {
    const double before = now();
    for (int i = 0; i < repeats; i++) run(request, out, &why);
    samples[count++] = (now() - before) / repeats;
  } while (count < MAX_SAMPLES && now() - start < turn);
  qsort(samples, (size_t)count, sizeof *samples, by_size);
  printf("%.9g", samples[count / 2]);
  for (int i = 0; i < numbers; i++) printf("\t%.17g", out[i]);
  printf("\n");
  fflush(stdout);
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "read") == 0) {
    const int threads = atoi(argv[3]);
    if (threads < 1 || threads > MAX_THREADS) return 2;
    printf("%zu\n", read_all(argv[2], threads));
    return 0;
  }
#ifdef HAS_CRC
  make_shift(long_shift, LONG_LANE);
  make_shift(short_shift, SHORT_LANE);
#endif
  static char line[16384];
  while (fgets(line, sizeof line, stdin) != NULL) {
    struct request request = {.count = 0};
    line[strcspn(line, "\n")] = 0;
    for (char *rest = line, *word; request.count < MAX_WORDS && (word = strsep(&rest, "\t")) != NULL;)
      request.words[request.count++] = word;
    answer(&request);
  }
  return 0;
}
