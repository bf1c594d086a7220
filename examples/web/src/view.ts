/** The few elements that the page is made of. */

export function text(content: string): HTMLElement {
  const element = document.createElement('output')
  element.textContent = content
  return element
}

export function button(label: string, onClick: () => unknown): HTMLElement {
  const element = document.createElement('button')
  element.type = 'button'
  element.textContent = label
  element.addEventListener('click', onClick)
  return element
}

/** One line to fill in. */
export function form(label: string, action: string, onSubmit: (value: string) => unknown): HTMLElement {
  const element = document.createElement('form')
  const input = document.createElement('input')
  input.placeholder = label
  input.ariaLabel = label
  input.required = true
  const submit = document.createElement('button')
  submit.textContent = action
  element.append(input, submit)
  element.addEventListener('submit', event => {
    event.preventDefault()
    const { value } = input
    input.value = ''
    onSubmit(value.trim())
  })
  return element
}

export function item(title: string, ...actions: readonly HTMLElement[]): HTMLElement {
  const element = document.createElement('li')
  element.append(text(title), ...actions)
  return element
}

export function section(title: string, ...content: readonly HTMLElement[]): HTMLElement {
  const element = document.createElement('section')
  if (title !== '') {
    const heading = document.createElement('h2')
    heading.textContent = title
    element.append(heading)
  }
  element.append(...content)
  return element
}
