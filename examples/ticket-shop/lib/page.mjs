/** How many files the page asks for besides itself. */
export const assetCount = 40
/** The first ones are style sheets, the others pictures. */
const sheetCount = 4

/** The names of the files of the page, as in `1.css` and `5.svg`. */
export const assetNames = Array.from(
  { length: assetCount },
  (_, index) => `${index + 1}.${index < sheetCount ? 'css' : 'svg'}`,
)

/**
 * The type and text of a file of the page, if there is one of that name.
 * @param {string} name
 */
export function asset(name) {
  const number = assetNames.indexOf(name) + 1
  if (number === 0) return undefined
  return number <= sheetCount
    ? { type: 'text/css; charset=utf-8', text: sheet(number) }
    : { type: 'image/svg+xml', text: picture(number) }
}

/**
 * The page: a poster for every picture. Addresses are relative, so that it also works below a prefix.
 * @param {readonly import('./events.mjs').Event[]} events
 */
export function page(events) {
  const links = assetNames.slice(0, sheetCount).map((name) => `<link rel="stylesheet" href="assets/${name}">`)
  const cards = assetNames.slice(sheetCount).map((name, index) => {
    const { id, title, city } = events[index]
    return `<a href="events/${id}"><img src="assets/${name}" alt="" width="96" height="96">${title}, ${city}</a>`
  })
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Ticket shop</title>
<link rel="icon" href="assets/${assetNames[sheetCount]}">
${links.join('\n')}
</head>
<body>
<h1>Ticket shop</h1>
<main>
${cards.join('\n')}
</main>
</body>
</html>
`
}

function sheet(number) {
  const sheets = [
    'body { font: 1rem/1.4 system-ui, sans-serif; margin: 2rem }',
    'main { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)) }',
    'a { color: inherit; text-decoration: none } a:hover { text-decoration: underline }',
    'img { border-radius: 0.5rem; display: block; margin-bottom: 0.25rem }',
  ]
  return `${sheets[number - 1]}\n`
}

function picture(number) {
  const hue = (number * 47) % 360
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 96">
<rect width="96" height="96" fill="hsl(${hue} 60% 40%)"/>
<circle cx="${20 + ((number * 13) % 56)}" cy="${20 + ((number * 29) % 56)}" r="18" fill="hsl(${(hue + 150) % 360} 70% 70%)"/>
</svg>
`
}
