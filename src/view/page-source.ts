/** The page of a report, as texts. scripts/make-page.mjs builds the module declared here from src/view/page. */

export declare const SCRIPT: string
export declare const STYLE: string
/** The licences of the packages in the page. */
export declare const LICENSES: string
