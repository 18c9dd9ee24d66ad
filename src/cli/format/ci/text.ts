/** The formats of reports by name. */

import { githubText } from './github.js'
import { junitText } from './junit.js'
import type { Report } from './report.js'
import { sarifText } from './sarif.js'

const WRITERS = { github: githubText, junit: junitText, sarif: sarifText } as const

export type ReportFormat = keyof typeof WRITERS

export function isReportFormat(format: string): format is ReportFormat {
  return Object.hasOwn(WRITERS, format)
}

/** True for the formats that hold the whole verdict. */
export function isForPrograms(format: string): boolean {
  return format === 'json' || isReportFormat(format)
}

export function reportText(format: ReportFormat, reports: readonly Report[]): string {
  return WRITERS[format](reports)
}
