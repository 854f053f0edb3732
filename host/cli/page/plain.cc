// Writes tables row by row and escapes each text. The page has no script, and no style that a browser would have to
// fetch.
#include "page/plain.h"

#include <fmt/format.h>

#include "dsat/config/json.h"
#include "page/page.h"
#include "terminal/changes.h"
#include "terminal/format.h"

namespace dsat::cli {
namespace {

using Row = std::vector<std::string>;

std::string row_text(const Row& cells, const char* tag) {
  std::string text = "<tr>";
  for (const std::string& cell : cells) text += fmt::format("<{0}>{1}</{0}>", tag, html_escaped(cell));
  return text + "</tr>\n";
}

std::string table_text(const std::string& title, const Row& head, const std::vector<Row>& rows) {
  std::string text = fmt::format("<h2>{}</h2>\n<table>\n<thead>{}</thead>\n<tbody>\n", title, row_text(head, "th"));
  for (const Row& row : rows) text += row_text(row, "td");
  return text + "</tbody>\n</table>\n";
}

std::string text_or_dash(const Json& value) { return value.is_null() ? "-" : config::text_of(value); }

std::string metric_or_dash(const std::string& metric, const std::optional<double>& value) {
  return value ? host::format_metric(metric, *value) : "-";
}

std::string stages_table(const host::StudyFacts& facts) {
  std::vector<Row> rows;
  for (const host::StageFacts& stage : facts.stages) {
    rows.push_back({fmt::to_string(stage.stage), fmt::to_string(stage.trials), fmt::to_string(stage.out_of_memory),
                    fmt::to_string(stage.failed), metric_or_dash(facts.metric, stage.best_value),
                    stage.best_trial ? fmt::to_string(*stage.best_trial) : "-"});
  }
  return table_text("Stages", {"stage", "trials", "out of memory", "failed", "best", "its trial"}, rows);
}

std::string trials_table(const host::StudyFacts& facts) {
  std::vector<Row> rows;
  for (const host::TrialRecord& trial : facts.record.trials) {
    const host::TrialFacts& more = facts.trials[trial.id];
    const std::string note = trial.reason.empty() ? trial.note : trial.note + ": " + trial.reason;
    rows.push_back({fmt::to_string(trial.id), more.phase, fmt::to_string(more.stage), or_dash(more.micro_batch),
                    trial.outcome ? to_string(*trial.outcome) : to_string(more.place),
                    metric_or_dash(facts.metric, more.value), bytes_or_dash(trial.peak_bytes), note});
  }
  return table_text("Trials", {"trial", "phase", "stage", "micro batch", "outcome", facts.metric, "peak", "note"},
                    rows);
}

std::string changes_table(const host::StudyFacts& facts) {
  std::vector<Row> rows;
  for (const host::ConfigChange& change : facts.changes) {
    rows.push_back({change.key, text_or_dash(change.own), text_or_dash(change.best)});
  }
  return rows.empty() ? "" : table_text("What the best configuration changes", {"key", "yours", "best"}, rows);
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < ' ' && c != '\n' ? ' ' : c;
    }
  }
  return escaped;
}

std::string plain_study(const host::StudyFacts& facts) {
  const host::StudyRecord& record = facts.record;
  std::string text =
      fmt::format("<h1>{}</h1>\n<p>{}{}{}</p>\n", html_escaped(record.study.value("name", "study")),
                  to_string(record.status), record.reason.empty() ? "" : ": ", html_escaped(record.reason));
  if (record.best) {
    text += fmt::format("<p>Best: trial {}, {}</p>\n", record.best->trial,
                        host::format_metric(facts.metric, record.best->metric));
    if (facts.gain) {
      text +=
          fmt::format("<p>Gain: {}{}</p>\n", host::format_gain(*facts.gain, record.best->trial), devices_note(facts));
      text += fmt::format("<p>{}</p>\n", host::format_gain_sides(*facts.gain, facts.metric));
    }
    if (facts.check) text += fmt::format("<p>{}</p>\n", html_escaped(host::format_check(*facts.check)));
    if (facts.end_to_end && facts.end_to_end->is_script_bound()) {
      text += fmt::format("<p>End to end: {}</p>\n", host::format_end_to_end(*facts.end_to_end));
    }
    text += changes_table(facts);
    const std::string config = config::text_of(record.best->config, 2);
    text += fmt::format("<h2>The best configuration</h2>\n<pre>{}</pre>\n", html_escaped(config));
  }
  return text + stages_table(facts) + trials_table(facts);
}

std::string plain_page(const std::vector<const host::StudyFacts*>& studies, bool live) {
  std::string text = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  if (live) text += "<meta http-equiv=\"refresh\" content=\"2\">\n";
  text +=
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>dsat</title>\n<style>\n"
      ":root { color-scheme: light dark; }\nbody { font: 16px/1.5 sans-serif; margin: 1rem; }\n"
      "table { border-collapse: collapse; }\nth, td { padding: .2rem .6rem; text-align: left; border: 1px solid #8888; "
      "}\n"
      "</style>\n</head>\n<body>\n<p>This dsat-host was built without the charts. "
      "<code>scripts/install-deps page</code> and another build bring them.</p>\n";
  for (const host::StudyFacts* study : studies) text += plain_study(*study);
  return text + "</body>\n</html>\n";
}

}  // namespace dsat::cli
