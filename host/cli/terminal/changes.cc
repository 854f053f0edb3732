// Makes a table of the keys, each with the user's value and the best one. Long values are cut; the file has them whole.
// A note names the learning rate if the global batch changes, because the user chose it for the old batch.
#include "terminal/changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/base/table.h"
#include "dsat/base/utf8.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/host/format.h"
#include "terminal/console.h"

namespace dsat::cli {
namespace {

std::string shown(const Json& value) {
  constexpr size_t kLongest = 30;
  if (value.is_null()) return "(not set)";
  return shortened(one_line(config::text_of(value)), kLongest);
}

std::string learning_rate_note(const host::StudyFacts& facts) {
  const auto batch = std::find_if(facts.changes.begin(), facts.changes.end(), [](const host::ConfigChange& change) {
    return change.key == config::kTrainBatchKey;
  });
  const bool known = batch != facts.changes.end() && batch->own.is_number() && batch->best.is_number();
  const std::string sizes = known ? fmt::format("{} samples in place of {}", batch->best.dump(), batch->own.dump())
                                  : std::string("not yours");
  const std::string keep =
      known ? fmt::format("--global-batch {}", batch->own.dump()) : std::string("--global-batch N");
  return fmt::format(
      "note: the global batch is {}: learning rate and warm-up were chosen for yours, check them before a long run; {} "
      "searches without changing it",
      sizes, keep);
}

}  // namespace

std::string devices_note(const host::StudyFacts& facts) {
  if (!facts.baseline || !facts.record.best) return "";
  const auto& trials = facts.record.trials;
  return host::format_devices(trials[*facts.baseline].config, trials[facts.record.best->trial].config);
}

std::vector<std::string> change_lines(const host::StudyFacts& facts) {
  std::vector<std::string> lines;
  if (!facts.record.best || !facts.has_own) return lines;
  const uint64_t best = facts.record.best->trial;
  if (facts.changes.empty()) {
    const std::string devices = devices_note(facts);
    lines.push_back(
        fmt::format("best configuration (trial {}): your own{}", best, devices.empty() ? ", unchanged" : devices));
  } else {
    lines.push_back(fmt::format("best configuration (trial {}) against your own{}:", best, devices_note(facts)));
    std::vector<std::vector<std::string>> rows;
    for (const host::ConfigChange& change : facts.changes) {
      rows.push_back({"  " + one_line(change.key), shown(change.own), "->", shown(change.best)});
    }
    std::string table = format_table(rows);
    for (size_t begin = 0, end = 0; begin < table.size(); begin = end + 1) {
      end = table.find('\n', begin);
      lines.push_back(table.substr(begin, end - begin));
    }
  }
  if (facts.changed_train_batch) lines.push_back(learning_rate_note(facts));
  return lines;
}

}  // namespace dsat::cli
