// Light or dark: as the system has it, until the reader chooses.

const key = 'mixdown-theme';

/** isDark says what is shown now. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

/** colour is a colour of the style sheet, so that canvases follow it. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** theme starts the button; changed is called when what is shown changes. */
export function theme(changed) {
  const button = document.getElementById('theme');
  const show = () => {
    button.textContent = isDark() ? 'Light' : 'Dark';
    button.setAttribute('aria-label', `Show the page ${isDark() ? 'light' : 'dark'}`);
  };
  // Files opened from disk may have no storage: the choice then lasts as long as the page.
  try {
    const kept = localStorage.getItem(key);
    if (kept === 'dark' || kept === 'light') document.documentElement.dataset.theme = kept;
  } catch { /* no storage */ }
  button.hidden = false;
  show();
  button.addEventListener('click', () => {
    document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
    try { localStorage.setItem(key, document.documentElement.dataset.theme); } catch { /* no storage */ }
    show();
    changed();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { show(); changed(); });
}
