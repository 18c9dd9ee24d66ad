/** A page of HTML around data that its script draws. Text from trials is escaped: it can neither end an element nor run as a script. */

export interface PageParts {
  readonly title: string
  /** The data for the script. */
  readonly data: unknown
  /** Elements in the head: the style, and a policy. */
  readonly head: string
  /** The element of the script. */
  readonly script: string
}

export function pageHtml({ title, data, head, script }: PageParts): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
${head}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)} – trialscan</title>
</head>
<body>
<noscript>This page needs JavaScript, all of which is its own.</noscript>
<main id="report" aria-busy="true"></main>
<script id="data" type="application/json">${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>
${script}
</body>
</html>
`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
