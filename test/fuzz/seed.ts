/** What all fuzz tests draw from; TRIALSCAN_SEED draws others, as in test/setup.ts. */
export const SEED = Number(process.env.TRIALSCAN_SEED ?? 20191113)
