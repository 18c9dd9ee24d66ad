/**
 * Counters in a source, so that a run tells which of its branches it took: one at the start of every function, branch and
 * loop, and at the right side of every `?:`, `&&`, `||` and `??`. The text is changed and its lines stay, which does for
 * TypeScript and for AssemblyScript alike.
 */

import ts from 'typescript'

/** Gives each counter its number. */
export class Counters {
  count = 0

  next(): number {
    return this.count++
  }
}

/**
 * @param source of a module
 * @param prelude goes before it, on its first line
 * @param hit the expression that counts
 */
export function instrument(
  source: string,
  prelude: string,
  hit: (counter: number) => string,
  counters: Counters,
): string {
  const file = ts.createSourceFile('source.ts', source, ts.ScriptTarget.ES2023, true)
  const before = new Map<number, string[]>()
  const after = new Map<number, string[]>()
  const add = (map: Map<number, string[]>, at: number) => map.get(at) ?? map.set(at, []).get(at)!
  /** A statement of its own, at the beginning of a list of them. */
  const enter = (at: number) => add(before, at).push(` ${hit(counters.next())};`)
  const wrap = (node: ts.Node, open: string, close: string) => {
    add(before, node.getStart(file)).push(open)
    // What is inside is closed first.
    add(after, node.getEnd()).unshift(close)
  }
  const branch = (statement: ts.Statement | undefined) => {
    if (statement === undefined || ts.isIfStatement(statement)) return
    if (ts.isBlock(statement)) enter(statement.getStart(file) + 1)
    else wrap(statement, `{ ${hit(counters.next())}; `, ' }')
  }
  // A name stays one: AssemblyScript wants some of them at compile time.
  const operand = (expression: ts.Expression) => {
    if (!ts.isIdentifier(expression)) wrap(expression, `(${hit(counters.next())}, `, ')')
  }
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body) {
      const body = node.body as ts.ConciseBody
      if (ts.isBlock(body)) enter(body.getStart(file) + 1)
      else operand(body)
    } else if (ts.isIfStatement(node)) {
      branch(node.thenStatement)
      branch(node.elseStatement)
    } else if (ts.isIterationStatement(node, false)) {
      branch(node.statement)
    } else if (ts.isCaseOrDefaultClause(node) && node.statements.length > 0) {
      enter(node.statements[0]!.getStart(file))
    } else if (ts.isCatchClause(node)) {
      branch(node.block)
    } else if (ts.isConditionalExpression(node)) {
      operand(node.whenTrue)
      operand(node.whenFalse)
    } else if (ts.isBinaryExpression(node) && isShortCircuit(node.operatorToken.kind)) {
      operand(node.right)
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  let out = prelude
  let from = 0
  for (const at of [...new Set([...before.keys(), ...after.keys()])].sort((a, b) => a - b)) {
    out += source.slice(from, at) + (after.get(at) ?? []).join('') + (before.get(at) ?? []).join('')
    from = at
  }
  return out + source.slice(from)
}

function isShortCircuit(kind: ts.SyntaxKind): boolean {
  return (
    kind === ts.SyntaxKind.AmpersandAmpersandToken ||
    kind === ts.SyntaxKind.BarBarToken ||
    kind === ts.SyntaxKind.QuestionQuestionToken
  )
}
