// Asks the pages in a folder, as a browser would: `node export.mjs FOLDER '["api/…"]'` prints the answers as JSON.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import vm from 'node:vm'

const [folder, paths] = process.argv.slice(2)
const window = {}
const run = file => vm.runInContext(readFileSync(join(folder, file), 'utf8'), context, { filename: file })
const document = {
  createElement: () => ({}),
  head: {
    append(script) {
      run(script.src)
      script.onload()
    },
  },
}
const context = vm.createContext({ window, document, URL, decodeURIComponent, console })
run('page/answers.js')
context.longhaulExport = window.longhaulExport
const answers = []
for (const path of JSON.parse(paths)) answers.push(await window.longhaulExport.get(path))
process.stdout.write(JSON.stringify(answers))
