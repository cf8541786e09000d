#include "autotune/report/page.h"

#include "autotune/report/html.h"

namespace tilewright::autotune::report {

namespace {

// Colours of a pair keep their contrast for those who do not tell red from green.
constexpr const char* kStyle = R"(<style>
:root { color-scheme: light dark; --page: #ffffff; --panel: #f5f6f8; --ink: #1c2330; --soft: #5a6473;
  --line: #dfe3e8; --usual: #7c838e; --tuned: #2a6f97; --trial: #c0a36e; --best: #b3541e; }
@media (prefers-color-scheme: dark) { :root { --page: #14181e; --panel: #1d232b; --ink: #e4e8ee;
  --soft: #9aa5b3; --line: #323a45; --usual: #a3abb7; --tuned: #5fb0dc; --trial: #8f7a4f; --best: #f0945a; } }
body { margin: 0 auto; padding: 24px 20px 60px; max-width: 1000px; background: var(--page);
  color: var(--ink); font: 15px/1.45 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 24px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 36px 0 2px; }
p { margin: 2px 0 10px; color: var(--soft); }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 10px; margin: 18px 0 0; }
dl div { background: var(--panel); border-radius: 6px; padding: 9px 13px; }
dt { color: var(--soft); font-size: 13px; }
dd { margin: 0; overflow-wrap: anywhere; }
dl .main { grid-column: 1 / -1; }
.main dd { font-size: 26px; }
.main small { font-size: 15px; color: var(--soft); }
svg { width: 100%; height: auto; display: block; }
svg text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink);
  stroke: var(--page); stroke-width: 3px; stroke-linejoin: round; paint-order: stroke; }
svg .tick { font-size: 11px; fill: var(--soft); }
svg .grid { stroke: var(--line); stroke-width: 0.7; }
svg .axis { stroke: var(--soft); }
svg .interval { stroke: var(--ink); fill: none; stroke-width: 1.2; }
svg .curve { stroke: var(--tuned); fill: none; stroke-width: 2; }
svg .second { stroke: var(--best); fill: none; stroke-width: 2; }
svg .band { fill: var(--trial); fill-opacity: 0.4; }
svg .diagonal { stroke: var(--soft); stroke-dasharray: 5 4; }
svg .roof { stroke: var(--best); stroke-width: 1.2; }
svg .joint { stroke: var(--tuned); stroke-width: 1.2; }
svg .usual { fill: var(--page); stroke: var(--usual); stroke-width: 1.8; }
svg .tuned { fill: var(--tuned); }
svg .trial { fill: var(--trial); fill-opacity: 0.55; }
svg .confirmed, svg .measured { fill: var(--best); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; vertical-align: top; padding: 4px 10px 4px 0; border-top: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; border-top: 0; vertical-align: bottom; }
td.name { overflow-wrap: anywhere; min-width: 200px; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
</style>
)";

}  // namespace

std::string whole_page(const std::string& title, const std::string& body) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         escape(title) + "</title>\n" + kStyle + "</head>\n<body>\n" + body + "</body></html>\n";
}

std::string section(const std::string& title, const std::string& about, const std::string& body) {
  return "<section><h2>" + escape(title) + "</h2>\n<p>" + about + "</p>\n" + body + "</section>\n";
}

std::string fact(const char* name, const std::string& text) {
  return std::string("<div><dt>") + name + "</dt><dd>" + escape(text) + "</dd></div>\n";
}

}  // namespace tilewright::autotune::report
