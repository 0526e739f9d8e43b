/** The web globals the library needs: present in Node, Deno, Bun, workers and browsers. */
declare const performance: { now(): number }
declare const crypto: { getRandomValues<Numbers extends Int32Array | Uint32Array>(numbers: Numbers): Numbers }
