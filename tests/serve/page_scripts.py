"""Expressions of JavaScript that page_test.py evaluates in a page."""

CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex='0']"

# Returns texts that have too little contrast: [contrast, text]. A canvas mixes the colours behind each text.
LOW_CONTRAST = """(() => {
  const canvas = Object.assign(document.createElement('canvas'), {width: 1, height: 1});
  const context = canvas.getContext('2d', {willReadFrequently: true});
  const mix = colors => {
    context.clearRect(0, 0, 1, 1);
    for (const color of colors) { context.fillStyle = color; context.fillRect(0, 0, 1, 1); }
    const linear = c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
    const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map(c => linear(c / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const low = [], check = (node, style, text) => {
    const behind = [];
    for (let at = node; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
    const [dark, light] = [mix(behind), mix([...behind, style.color])].sort((a, b) => a - b);
    const contrast = (light + .05) / (dark + .05);
    if (contrast < 4.5) low.push([contrast.toFixed(2), text]);
  };
  for (const node of document.querySelectorAll('body *')) {
    if (!node.checkVisibility() || node.closest('script')) continue;
    const own = [...node.childNodes].filter(child => child.nodeType === 3).map(child => child.data).join('').trim();
    if (own || node.value) check(node, getComputedStyle(node), own || node.value);
    if (node.placeholder) check(node, getComputedStyle(node, '::placeholder'), node.placeholder);
  }
  return low;
})()"""

# Returns the controls that can be used now, as texts.
USABLE = f"""(() => {{
  window.nameOf = node => node.id || node.getAttribute('href') || node.textContent.slice(0, 30);
  return [...document.querySelectorAll("{CONTROLS}")]
      .filter(node => node.checkVisibility() && !node.disabled && node.tabIndex >= 0).map(nameOf);
}})()"""

# Returns what does not fit into the width of the window: parts that would have to scroll, and controls that leave it.
TOO_WIDE = """[
  ...[document.documentElement, document.querySelector('main'), $('log'), $('settings')]
      .filter(node => node.checkVisibility() && node.scrollWidth > node.clientWidth),
  ...[...document.querySelectorAll('button, input, select, textarea, a, meter')]
      .filter(node => node.checkVisibility() && node.getBoundingClientRect().right > innerWidth)
].map(node => node.id || node.tagName + ' ' + node.textContent.slice(0, 30))"""
