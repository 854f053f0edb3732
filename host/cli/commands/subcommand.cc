// Reads options and operands of a sub-command in one pass. --help is found first, so that no error hides it. A run
// directory may also be named by the folder of DeepSpeed's results that holds it.
#include "commands/subcommand.h"

#include <fmt/format.h>

#include <algorithm>

#include "deepspeed/study_file.h"
#include "dsat/abi.h"
#include "dsat/cli/help.h"
#include "dsat/error.h"

namespace dsat::cli {

void print_version(Console& console) {
  console.line(fmt::format("dsat-host {} (plugin ABI {}.{})", DSAT_VERSION, DSAT_ABI_MAJOR, DSAT_ABI_MINOR));
}

void print_help(const std::string& usage, const OptionSet& set, Console& console) {
  constexpr int kColumns = 100;
  const int columns = console.text().terminal() ? console.text().columns() : kColumns;
  console.print(usage + help_text(set, static_cast<unsigned>(std::clamp(columns, 80, kColumns))));
}

std::optional<SubCommandArguments> read_request(const OptionSet& set, const Tokens& arguments, const std::string& usage,
                                                Console& console) {
  const bool help = std::any_of(arguments.begin(), arguments.end(),
                                [](const std::string& token) { return token == "--help" || token == "-h"; });
  if (help) {
    print_help(usage, set, console);
    return std::nullopt;
  }
  Split parts = split(set, arguments, Grammar::operands);
  SubCommandArguments request{Values(set, parts.options), std::move(parts.rest)};
  if (request.values.given("json")) console.reserve_stdout_for_json();
  return request;
}

std::filesystem::path only_directory(const Tokens& operands, const std::string& sub_command) {
  if (operands.empty()) {
    throw Error(fmt::format("{0} needs the run directory of a study: type dsat-host {0} DIR", sub_command));
  }
  if (operands.size() > 1) {
    throw Error(fmt::format("{} takes one run directory: '{}' is one too many", sub_command, operands[1]));
  }
  const std::filesystem::path dir = operands.front(), within = dir / kDeepspeedRunDir;
  std::error_code ignored;
  const bool results_of_form =
      !std::filesystem::exists(dir / "dsat.db", ignored) && std::filesystem::exists(within / "dsat.db", ignored);
  return results_of_form ? within : dir;
}

void refuse_operands(const Tokens& operands, const std::string& sub_command) {
  if (!operands.empty()) throw Error(fmt::format("{} takes options only: drop '{}'", sub_command, operands.front()));
}

}  // namespace dsat::cli
