/** Samples placed by the app's worker itself. The build puts this module in the place of view/samples/away. */

export { placedByAll as placedAway } from '../../view/samples/embed.js'
