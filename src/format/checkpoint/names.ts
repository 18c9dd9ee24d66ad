/** The order and the collections of a checkpoint's tensors, from their names. */

/** Parts of a name that stand for a kind of tensor, with where they come from. docs/checkpoints.md has the same table. */
const EMBEDDING = /(?:^|[._])(?:embed\w*|wte|wpe|tok_embeddings|word_embeddings|position_embeddings|shared)(?:[.]|$)/i
const NORM = /(?:^|[._])(?:\w*norm\w*|ln_?[f\d]|ln_\w+|bn\d*)(?:[.]|$)/i
const ATTENTION = /(?:^|[._])(?:\w*attn\w*|\w*attention\w*)(?:[.]|$)/i
const MLP = /(?:^|[._])(?:mlp|ffn|feed_forward|feedforward|experts?|moe|block_sparse_moe|fc\d*)(?:[.]|$)/i
const ADAPTER = /(?:^|[._])lora_(?:A|B|embedding_A|embedding_B|magnitude_vector)(?:[.]|$)/
const HEAD = /(?:^|[.])(?:lm_head|embed_out|output|score|classifier|cls|heads?)(?:[.]|$)/i
const FINAL_NORM = /(?:^|[.])(?:norm|ln_f|final_layernorm|final_layer_norm|ln_post|ln_final|post_layernorm)(?:[.]|$)/i
const OPTIMIZER =
  /^(?!state_dict[.])(?:optimizer|optim|opt|state)[._]|(?:^|[._])(?:exp_avg|exp_avg_sq|max_exp_avg_sq|momentum_buffer)(?:[.]|$)|(?:^|[.])[Aa]dam(?:_[1mv])?(?:[.]|$)/
const MASTER =
  /(?:^|[._])(?:master(?:_weights?|_params?)?|fp32(?:_flat_groups|_from_fp16)?|single_partition_of_fp32_groups)(?:[.]|$)/
const SCALE =
  /(?:^|[._])(?:\w*scales?(?:_inv|_2)?|\w*zeros|qzeros|g_idx|\w*absmax|\w*quant_map|quant_state\S*|SCB|weight_format|weight_shape)$/
/** A parameter of a norm, as Flax and gpt-oss name it. */
const NORM_SCALE = /(?:norm\w*|(?:^|[._])(?:ln_?\w+|bn\d*))[.]scale$/i
/** Weights of what is learned from or lost, none of a layer's. */
const DATA_WEIGHT = /(?:^|[._])(?:sample|class|instance|edge)_weights?$/

const RANDOM_STATE = /(?:^|[._])(?:\w*rng(?:_states?)?|random_states?)(?:[._]|$)/

/** The gradient of a parameter, a loss, and what a layer gives, as trialscan.py, smdebug's hooks and most scripts name them. */
const GRADIENT = /^grad(?:ient)?s?[/.]|[.]grad$|[.]parameters_grad(?:[.]|$)|[.]backward[.]\d+[.]/
const LOSS = /(?:^|[/_.])loss$/i
/** Weights of all experts in one tensor, as transformers has them: `experts.down_proj`. */
const EXPERTS = /(?:^|[.])experts[.]\w+_proj$/
const OUTPUT = /_output_\d+$|[.]forward[.]\d+[.]output(?:[.]|$)/

/** Optimizer states that are collections of their own. */
const STATES: readonly (readonly [collection: string, pattern: RegExp])[] = [
  ['exp_avg', /(?:^|[._])exp_avg(?:[.]|$)/],
  ['exp_avg_sq', /(?:^|[._])(?:max_)?exp_avg_sq(?:[.]|$)/],
  ['momentum_buffer', /(?:^|[._])momentum_buffer(?:[.]|$)/],
]

/** The rank of a tensor in the order: embeddings come first; the last norm, the head and tensors outside of the model come last. */
function rankOf(name: string): number {
  if (isOptimizerState(name)) return 5
  const isOfLayer = /(?:^|[.])\d+(?:[.]|$)/.test(name)
  if (isOfLayer) return 1
  if (HEAD.test(name)) return 3
  if (EMBEDDING.test(name)) return 0
  return FINAL_NORM.test(name) ? 2 : 1
}

/** A text that sorts as the natural order of names does: numbers in names by their size. */
export function orderKey(name: string): string {
  const padded = name.replace(/\d+/g, digits => {
    const plain = digits.replace(/^0+(?=\d)/, '')
    return `${String.fromCharCode(48 + Math.min(plain.length, 60))}${plain}`
  })
  return `${rankOf(name)}${padded}`
}

/** A name in the form of PyTorch: TensorFlow and JAX write `dense/kernel`, and TensorFlow ends its variables with `:0`. */
function dotted(name: string): string {
  return name.replace(/:\d+$/, '').replaceAll('/', '.')
}

function isScale(name: string): boolean {
  return SCALE.test(name) && !NORM_SCALE.test(name)
}

/** True for an optimizer's state. */
export function isOptimizerState(path: string): boolean {
  const name = dotted(path)
  return OPTIMIZER.test(name) || MASTER.test(name)
}

/** True if a tensor's elements count as parameters of the model. */
export function isParameter(path: string): boolean {
  const name = dotted(path)
  return (
    !GRADIENT.test(name) &&
    !LOSS.test(name) &&
    !OUTPUT.test(name) &&
    !isOptimizerState(name) &&
    !isScale(name) &&
    !RANDOM_STATE.test(name)
  )
}

/** The collections that a name belongs to. */
export function collectionsOf(path: string): string[] {
  const name = dotted(path)
  if (GRADIENT.test(name)) return ['gradients']
  if (LOSS.test(name)) return ['losses']
  if (OUTPUT.test(name)) return ['outputs']
  if (isOptimizerState(name)) {
    const states = STATES.filter(([, pattern]) => pattern.test(name)).map(([collection]) => collection)
    return ['optimizer', ...(MASTER.test(name) ? ['master_weights'] : []), ...states]
  }
  const last = name.slice(name.lastIndexOf('.') + 1)
  const collections: string[] = []
  if (
    (/^(?:weights?|kernel|[wW]\d*|weight_packed|weight_v|weight_g|blocks)$|_weight$|^qweight$/.test(last) &&
      !DATA_WEIGHT.test(name)) ||
    EXPERTS.test(name)
  )
    collections.push('weights')
  else if (/^(?:bias|biases|[bB]\d*|beta)$|_bias$/.test(last)) collections.push('biases')
  if (ADAPTER.test(name)) collections.push('adapters')
  if (isScale(name)) collections.push('scales')
  if (EMBEDDING.test(name)) collections.push('embeddings')
  if (NORM.test(name)) collections.push('norms')
  else if (ATTENTION.test(name)) collections.push('attention')
  else if (MLP.test(name)) collections.push('mlp')
  return collections
}
