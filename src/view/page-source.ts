/** The page that shows a report, in one piece: scripts/make-page.mjs writes what is declared here, out of src/view/page. */

export declare const SCRIPT: string
export declare const STYLE: string
/** The licences of the packages in the page. */
export declare const LICENSES: string
