// What scripts say, in the reader's language: web/bundles.py puts gwWords in front of this file for a language other than
// English (config/catalogs.py makes it). The names are those that `make messages` looks for.

const { plural = (n) => Number(n !== 1), texts = {} } = globalThis.gwWords ?? {};
globalThis.gettext = (text) => texts[text] ?? text;
globalThis.pgettext = (context, text) => texts[`${context}\x04${text}`] ?? text;
globalThis.ngettext = (one, many, n) => texts[one]?.[plural(n)] ?? (n === 1 ? one : many);
/** Put values into a text: interpolate(gettext("Cancel %(name)s"), { name }). */
globalThis.interpolate = (text, values) => text.replace(/%\((\w+)\)s/g, (_, name) => values[name]);
