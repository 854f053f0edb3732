// Bundles the page into one file: node build.mjs OUT. The data is put in by dsat-host where <!--dsat-data--> stands.
import {createHash} from 'node:crypto';
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {delimiter, dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

// NODE_PATH, where the packages are, counts for require() alone; the bundler is told of it.
const {build} = createRequire(import.meta.url)('esbuild');
const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, 'dist', 'page.html');

async function bundle(entry) {
  const result = await build({
    entryPoints: [join(here, 'src', entry)],
    bundle: true,
    nodePaths: process.env.NODE_PATH?.split(delimiter) ?? [],
    minify: true,
    write: false,
    charset: 'utf8',
    target: 'es2022',
    format: 'iife',
    legalComments: 'inline',
    logLevel: 'warning',
  });
  return result.outputFiles[0].text.trim();
}

// What would end the element that holds it.
const script = (await bundle('main.ts')).replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
const style = await bundle('style.css');
// The browser runs and applies nothing but these two.
const hashOf = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const page = readFileSync(join(here, 'src', 'page.html'), 'utf8')
  .replace('STYLE_HASH', hashOf(style))
  .replace('SCRIPT_HASH', hashOf(script))
  .replace('/*style*/', () => style)
  .replace('/*script*/', () => script);
mkdirSync(dirname(out), {recursive: true});
writeFileSync(out, page);
