/** The page that shows a report, in one piece: scripts/make-page.mjs writes what is declared here, out of src/view/page. */

export declare const SCRIPT: string
export declare const STYLE: string
/** Of the packages that are in it. */
export declare const LICENSES: string
