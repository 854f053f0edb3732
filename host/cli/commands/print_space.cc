// An axis is two lines: its values, and what they are.
#include "commands/print_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dsat/host/space.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

std::string values_of(const host::AxisFacts& axis) {
  std::vector<std::string> texts;
  for (const Json& value : axis.values) texts.push_back(value.dump());
  if (axis.key != "train_micro_batch_size_per_gpu") return fmt::format("{}", fmt::join(texts, " "));
  return texts.size() > 1 ? fmt::format("{} to {}", texts[0], texts[1])
                          : fmt::format("from {} on, what fits", texts[0]);
}

}  // namespace

int print_space(const host::StudyOptions& options, Console& console) {
  const auto space = host::space_of(options);
  if (!space.ok()) return console.error(space.status().message()), exit_status(space.status());
  if (console.json()) return console.print_json(to_json(space.value())), kBestFound;
  for (const host::AxisFacts& axis : space.value().axes) {
    console.line(one_line(fmt::format("{}: {}", axis.key, values_of(axis))));
    std::string about = fmt::format("    stages {}; {}", fmt::join(axis.stages, " "), axis.origin);
    if (!axis.effect.empty()) about += "; " + axis.effect;
    for (const std::string& condition : axis.conditions) about += "; " + condition;
    if (!axis.readers.empty()) about += "; read by " + axis.readers;
    console.line(one_line(about));
  }
  for (const std::string& notice : space.value().notices) console.line(notice);
  return kBestFound;
}

}  // namespace dsat::cli
