/** A script for pages: a pretended camera whose picture can be told from any other, and how much of it has come. */
export const MARKED_PICTURE = `
// A picture of squares that are the same everywhere, and one that changes with each frame.
const [COLUMNS, ROWS, SIDE] = [8, 6, 40]
const isWhite = at => (0x9d2c5680f3a7 / 2 ** at) % 2 >= 1
function drawMarks(fps, side, isRestless) {
  const canvas = document.createElement('canvas')
  ;[canvas.width, canvas.height] = [COLUMNS * side, ROWS * side]
  const context = canvas.getContext('2d')
  const square = (at, colour) => {
    context.fillStyle = colour
    context.fillRect((at % COLUMNS) * side, Math.floor(at / COLUMNS) * side, side, side)
  }
  let frame = 0
  const draw = () => {
    for (let at = 1; at < COLUMNS * ROWS; at++) square(at, isWhite(at) ? 'white' : 'black')
    square(0, 'hsl(' + (frame++ * 47) % 360 + ' 90% 50%)')
    for (let at = 0; isRestless && at < 60; at++) {
      context.fillStyle = 'hsl(' + (at * 47 + frame * 31) % 360 + ' 60% 50%)'
      context.fillRect(Math.random() * canvas.width, Math.random() * canvas.height, 9, 9)
    }
  }
  draw()
  setInterval(draw, 1000 / fps)
  return canvas.captureStream(fps).getVideoTracks()[0]
}

// Which part of the squares a picture shows; half of them by chance.
function marksIn(video) {
  if (!video?.videoWidth) return 0
  const canvas = document.createElement('canvas')
  ;[canvas.width, canvas.height] = [COLUMNS * SIDE, ROWS * SIDE]
  const context = canvas.getContext('2d')
  context.drawImage(video, 0, 0, canvas.width, canvas.height)
  let right = 0
  for (let at = 1; at < COLUMNS * ROWS; at++) {
    const [x, y] = [(at % COLUMNS) * SIDE + SIDE / 2, Math.floor(at / COLUMNS) * SIDE + SIDE / 2]
    const [red, green, blue] = context.getImageData(x, y, 1, 1).data
    if (red + green + blue > 384 === isWhite(at)) right++
  }
  return right / (COLUMNS * ROWS - 1)
}
`
