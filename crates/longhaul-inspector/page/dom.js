// Elements of the page. Everything that is shown goes in as text: nothing here reads markup.

/**
 * Makes an element: `h('a', {href: '#/', class: 'x', on: {click}}, 'text', element, …)`.
 * Null and false children are left out.
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue
    if (name === 'on') for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener)
    else if (name === 'style') for (const [key, set] of Object.entries(value)) element.style.setProperty(key, set)
    else if (name === 'data') Object.assign(element.dataset, value)
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  add(element, children)
  return element
}

/** Appends children, which may be nested lists. */
export function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue
    element.append(child instanceof Node ? child : String(child))
  }
  return element
}

/** Puts children in the place of all that an element has. */
export function fill(element, ...children) {
  element.replaceChildren()
  return add(element, children)
}

/** A number that no other element of the page has. */
let made = 0
export const newId = prefix => `${prefix}-${++made}`

/**
 * Tabs: `[{id, label, build: () => element}]`. A panel is built when it is first shown, so that what nobody looks at is
 * not fetched.
 */
export function tabs(label, list, chosen, onChoose) {
  const group = newId('tabs')
  const bar = h('div', { class: 'tabs', role: 'tablist', 'aria-label': label })
  const panels = h('div', { class: 'panels' })
  const built = new Map()
  const show = (id, focus) => {
    for (const button of bar.children) {
      const on = button.dataset.id === id
      button.setAttribute('aria-selected', on)
      button.tabIndex = on ? 0 : -1
      if (on && focus) button.focus()
    }
    const tab = list.find(tab => tab.id === id) ?? list[0]
    if (!built.has(tab.id)) {
      const panel = h(
        'div',
        { role: 'tabpanel', id: `${group}-p-${tab.id}`, 'aria-labelledby': `${group}-t-${tab.id}`, tabindex: -1 },
        tab.build(),
      )
      built.set(tab.id, panel)
      panels.append(panel)
    }
    for (const [key, panel] of built) panel.hidden = key !== tab.id
  }
  for (const tab of list) {
    bar.append(
      h(
        'button',
        {
          type: 'button',
          role: 'tab',
          id: `${group}-t-${tab.id}`,
          data: { id: tab.id },
          on: {
            click: () => {
              show(tab.id)
              onChoose?.(tab.id)
            },
          },
        },
        tab.label,
        tab.count === undefined ? null : h('span', { class: 'count' }, tab.count),
      ),
    )
  }
  bar.addEventListener('keydown', event => {
    const at = list.findIndex(tab => tab.id === document.activeElement?.dataset.id)
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: list.length - 1 }[event.key]
    if (at < 0 || to === undefined) return
    event.preventDefault()
    event.stopPropagation()
    const tab = list[(to + list.length) % list.length]
    show(tab.id, true)
    onChoose?.(tab.id)
  })
  show(chosen ?? list[0].id)
  const element = h('section', { class: 'tabbed' }, bar, panels)
  /** Makes a panel anew the next time it is shown; at once if it is the one that is shown. */
  element.rebuild = id => {
    const panel = built.get(id)
    if (panel) fill(panel, list.find(tab => tab.id === id).build())
  }
  element.show = show
  return element
}
