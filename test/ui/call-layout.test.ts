/** The call's page on phones, on a phone on its side and on desktops, measured: with two, three and five people. */

import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { openBrowser, skipWithoutChromium } from '../support/browser.ts'
import { bundleCallElement, openCallPage } from '../support/call-page.ts'
import { faultsOf } from '../support/operator-page.ts'

const browser = (await openBrowser(t)) as Browser
const script = skipWithoutChromium === false ? await bundleCallElement() : ''

const NAMES = ['Ann', 'Bob Brown', 'Cleo', 'Maximiliane-Alexandra von Hohenstein', 'Eve']
/** The least width of a tile that a face is seen in, by window. */
const SCREENS = [
  { width: 320, height: 568, tileWidth: 145 },
  { width: 390, height: 844, tileWidth: 180 },
  { width: 844, height: 390, tileWidth: 200 },
  { width: 1280, height: 800, tileWidth: 400 },
  { width: 1920, height: 1080, tileWidth: 560 },
] as const

interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

async function boxesOf(page: Page, selector: string): Promise<readonly Box[]> {
  const all = await page.locator(selector).all()
  const boxes = await Promise.all(all.map(one => one.boundingBox()))
  return boxes.filter(one => one !== null)
}

function overlap(one: Box, other: Box): boolean {
  const isApart =
    one.x + one.width <= other.x + 0.5 ||
    other.x + other.width <= one.x + 0.5 ||
    one.y + one.height <= other.y + 0.5 ||
    other.y + other.height <= one.y + 0.5
  return !isApart
}

/** The tiles of each row, from the top. */
function rowsOf(tiles: readonly Box[]): readonly (readonly Box[])[] {
  const tops = [...new Set(tiles.map(({ y }) => Math.round(y)))].toSorted((a, b) => a - b)
  return tops.map(top => tiles.filter(({ y }) => Math.round(y) === top))
}

function middleOf(boxes: readonly Box[]): number {
  const left = Math.min(...boxes.map(({ x }) => x))
  const right = Math.max(...boxes.map(({ x, width }) => x + width))
  return (left + right) / 2
}

for (const { width, height, tileWidth } of SCREENS) {
  for (const count of [2, 3, 5]) {
    t.test(`${count} people at ${width} by ${height}`, { skip: skipWithoutChromium }, async t => {
      const page = await openCallPage(t, browser, script, NAMES.slice(0, count), { width, height })
      const tiles = await boxesOf(page, '.grid .tile')
      t.equal(tiles.length, count === 2 ? 1 : count, 'of one other person the own tile lies on the picture')
      for (const tile of tiles) {
        t.ok(tile.width >= tileWidth, `${tile.width} wide`)
        const ratio = tile.width / tile.height
        if (count > 2) t.ok(ratio > 1.32 && ratio < 1.79, `ratio ${ratio}`)
        t.ok(tile.x >= 0 && tile.x + tile.width <= width && tile.y + tile.height <= height)
      }
      const whole = middleOf(tiles)
      for (const row of rowsOf(tiles)) t.ok(Math.abs(middleOf(row) - whole) <= 1, 'each row is in the middle')

      const others = await boxesOf(page, 'h2, .status, .pill, .round')
      for (const tile of tiles)
        t.notOk(
          others.some(one => overlap(one, tile)),
          'nothing lies on a tile',
        )
      const [title] = await boxesOf(page, 'h2')
      t.ok(title!.width >= 60, 'the title has room')
      const targets = await boxesOf(page, 'callsign-call button:visible')
      for (const target of targets) {
        t.ok(target.width >= 44 && target.height >= 44, `target of ${target.width} by ${target.height}`)
        t.ok(target.x >= 0 && target.x + target.width <= width && target.y + target.height <= height)
        t.notOk(targets.some(one => one !== target && overlap(one, target)))
      }
      const own = page.locator('figcaption', { hasText: 'You' })
      t.ok(await own.isVisible(), 'the own tile has a name')
      for (const caption of await boxesOf(page, '.grid figcaption'))
        t.ok(tiles.some(tile => caption.x >= tile.x && caption.x + caption.width <= tile.x + tile.width))
    })
  }
}

t.test('the own tile stays when camera and microphone go off', { skip: skipWithoutChromium }, async t => {
  for (const { width, height } of SCREENS) {
    const page = await openCallPage(t, browser, script, ['Ann', NAMES[3]!], { width, height })
    const [before] = await boxesOf(page, '.tile.floating')
    await page.keyboard.press('m')
    await page.keyboard.press('v')
    const own = page.locator('.tile.floating')
    await own.locator('.avatar').waitFor()
    t.match(await own.innerText(), /You/)
    t.equal(await own.locator('figcaption .icon').count(), 1, 'with the sign of a microphone that is off')
    const [after] = await boxesOf(page, '.tile.floating')
    t.same(after, before, 'where it was')
    const around = await boxesOf(page, 'h2, .status, .pill, .round, .grid figcaption')
    t.notOk(
      around.some(one => overlap(one, after!)),
      `apart from controls, title and the other’s name at ${width} by ${height}`,
    )
  }
})

t.test('beside a screen that is shown are the people', { skip: skipWithoutChromium }, async t => {
  for (const { width, height } of SCREENS) {
    const page = await openCallPage(t, browser, script, NAMES, { width, height })
    await page.evaluate(
      `media.show({ peers: media.view.peers.map((one, at) => ({ ...one, hasScreen: at === 0 })) })`,
    )
    await page.locator('.tile.screen').waitFor()
    const [screen] = await boxesOf(page, '.tile.screen')
    const people = await boxesOf(page, '.tile:not(.screen)')
    t.equal(people.length, 5)
    t.ok(people.every(one => one.width * one.height < screen!.width * screen!.height))
    t.notOk(people.some(one => overlap(one, screen!)))
    const within = people.every(one => one.x + one.width <= width && one.y + one.height <= height)
    t.ok(within, `${width} by ${height}`)
  }
})

t.test('a person who comes moves nothing but the tiles', { skip: skipWithoutChromium }, async t => {
  const page = await openCallPage(t, browser, script, NAMES, { width: 1280, height: 800 })
  await page.evaluate(`window.everybody = call.participants; become({ participants: everybody.slice(0, 3) })`)
  const around = () => boxesOf(page, '.round, h2, .stage, .pill.key')
  const before = await around()
  await page.evaluate('become({ participants: everybody })')
  t.equal((await boxesOf(page, '.grid .tile')).length, 5)
  t.same(await around(), before)
})

t.test('axe-core finds no fault in a call', { skip: skipWithoutChromium }, async t => {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await openCallPage(t, browser, script, NAMES, { width: 390, height: 844 }, { colorScheme })
    t.same(await faultsOf(page), [], colorScheme)
    for (const name of ['5 people', 'Encrypted', 'More']) {
      await page.getByRole('button', { name }).click()
      t.same(await faultsOf(page), [], `${name}, ${colorScheme}`)
    }
    await page.getByRole('button', { name: 'End for all' }).click()
    t.same(await faultsOf(page), [], `the question, ${colorScheme}`)
  }
})
