// dsat-host best: prints the best configuration of a study, or that of one trial, and writes the files of the best
// again. Only the configuration goes to standard output, so that it can be redirected.
#include <fmt/format.h>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/subcommand.h"
#include "dsat/config/json.h"
#include "dsat/error.h"
#include "dsat/host/record.h"
#include "dsat/host/rescue.h"
#include "terminal/exit_status.h"
#include "terminal/format.h"

namespace dsat::cli {
namespace {

constexpr const char* kUsageText =
    "Usage: dsat-host best DIR [--trial N] [--json]\n"
    "\n"
    "Writes the files of the best configuration again, however the study ended, and prints the configuration:\n"
    "nothing else goes to standard output. Reads the journal alone: no plugin is loaded and nothing is run.\n"
    "\n";

void print_best(const host::BestOutput& output, Console& console) {
  console.line(config::text_of(output.best.config, 2));
  console.aside(fmt::format("\ntrial {}, {}", output.best.trial, format_metric(output.metric, output.best.metric)));
  if (!output.best.why.empty()) console.aside(one_line(output.best.why));
  if (!output.command.empty()) console.aside(fmt::format("train with: {}", one_line(output.command)));
  for (const std::filesystem::path& file : output.written) console.aside(fmt::format("written  {}", file.string()));
  if (output.written.empty() && output.why_not_written.empty())
    console.aside("nothing is written: the study is running, and its host keeps the files current");
}

bool has_no_best(const std::filesystem::path& dir) {
  const auto study = host::read_study(dir);
  return study.ok() && !study->best;
}

}  // namespace

int best(const Tokens& arguments, Console& console) {
  const auto request = read_request(best_options(), arguments, kUsageText, console);
  if (!request) return kBestFound;
  const std::optional<int64_t> trial = request->values.integer("trial");
  const std::filesystem::path dir = only_directory(request->operands, "best");
  const auto output =
      host::write_best(dir, trial ? std::optional<uint64_t>(static_cast<uint64_t>(*trial)) : std::nullopt);
  if (!output.ok()) {
    console.error(output.status().message());
    return !trial && has_no_best(dir) ? kNoBest : exit_status(output.status());
  }
  if (!output->why_not_written.empty()) console.error(fmt::format("nothing is written: {}", output->why_not_written));
  if (!console.json()) return print_best(output.value(), console), kBestFound;
  Json json = host::to_json(output->best);
  json["command"] = output->command;
  json["written"] = Json::array();
  for (const std::filesystem::path& file : output->written) json["written"].push_back(file.string());
  console.print_json(json);
  return kBestFound;
}

}  // namespace dsat::cli
