#include "plot/page.h"

#include "base/error.h"
#include "text/markup.h"

namespace lattice::plot {
namespace {

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--ink:#1c1e21;--soft:#6a7076;--rule:#e4e6e8;
--c0:#2563eb;--c1:#d9480f;--c2:#2b8a3e;--c3:#9c36b5;--c4:#b08900;--c5:#0c8599;--lo:#8fb4f5;--hi:#1e3a8a}
@media(prefers-color-scheme:dark){:root{--bg:#141618;--card:#1c1f22;--ink:#e8eaed;--soft:#9aa1a8;--rule:#30353a;
--c0:#6ea8fe;--c1:#ff9d66;--c2:#69db7c;--c3:#da8ff0;--c4:#ffd43b;--c5:#66d9e8;--lo:#2b4a86;--hi:#bcd6ff}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.45 system-ui,sans-serif}
main{max-width:1180px;margin:0 auto;padding:28px 20px 60px}h1{font-size:24px;margin:0 0 4px}
h2{font-size:18px;margin:34px 0 4px}p{margin:0 0 14px;color:var(--soft);max-width:75ch}
.grid2{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:16px}
figure{margin:0;background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:12px 14px 6px}
h3{font-size:15px;margin:0;font-weight:600}h3 small{font-weight:400;color:var(--soft)}
.legend{font-size:12.5px;color:var(--soft);min-height:20px;display:flex;flex-wrap:wrap;gap:2px 14px}
.legend b{color:var(--ink);font-weight:600}.legend .sample{display:inline-block;width:22px;height:8px;margin:0 5px 1px 0}
svg{width:100%;height:auto;display:block}figure{overflow-x:auto}figure>svg[width]{min-width:600px}.grid{stroke:var(--rule);stroke-width:1}.tick{fill:var(--soft);font-size:10.5px}
.line{fill:none;stroke-width:1.3;stroke-linejoin:round}.strong{stroke-width:2.4}.dashed{stroke-dasharray:6 3.5}
.table{overflow-x:auto}table{border-collapse:collapse;margin:14px 0 18px;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:5px 14px 5px 0;border-bottom:1px solid var(--rule);vertical-align:baseline}
.runs :is(th,td){padding-right:11px}.runs td:nth-child(n+3),td code{white-space:nowrap}.runs td:first-child{overflow-wrap:anywhere;min-width:9em}
th{color:var(--soft);font-weight:500;font-size:13px}th:first-child,td:first-child,.runs :is(th,td):nth-child(2){text-align:left}
td i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:8px}
code{font:12.5px ui-monospace,monospace;word-break:break-all}td.wrap{min-width:320px}td.wrap code{white-space:normal}ul{margin:6px 0;padding-left:20px;color:var(--soft)}
)";

}  // namespace

std::string PageStart(const std::string& title) {
  const std::string name = text::Escaped(title);
  return StrCat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>",
      name, "</title><style>", kStyle, "</style></head><body><main>\n<h1>", name, "</h1>\n");
}

}  // namespace lattice::plot
