#include "operands.h"

#include <algorithm>

#include "dsat/error.h"

namespace dsat::cli {

std::optional<Request> read_request(const OptionSet& set, const Tokens& arguments, const std::string& usage,
                                    Console& console) {
  const bool help = std::any_of(arguments.begin(), arguments.end(),
                                [](const std::string& token) { return token == "--help" || token == "-h"; });
  if (help) {
    console.text().write(usage + help_text(set, 100));
    return std::nullopt;
  }
  Split parts = split(set, arguments, FreeTokens::interleave);
  Request request{Values(set, parts.options), std::move(parts.rest)};
  if (request.values.given("json")) console.reserve_stdout_for_json();
  return request;
}

const std::string& only_directory(const Tokens& operands, const std::string& sub_command) {
  if (operands.empty()) {
    throw Error(sub_command + " needs the run directory of a study: type dsat-host " + sub_command + " DIR");
  }
  if (operands.size() > 1) {
    throw Error(sub_command + " takes one run directory: '" + operands[1] + "' is one too many");
  }
  return operands.front();
}

void refuse_operands(const Tokens& operands, const std::string& sub_command) {
  if (!operands.empty()) throw Error(sub_command + " takes options only: drop '" + operands.front() + "'");
}

}  // namespace dsat::cli
