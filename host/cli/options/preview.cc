// Takes the options that matter before plugins are loaded from the kit's lenient reading. split() reads the rest once
// the plugins' options are known.
#include "options/preview.h"

namespace dsat::cli {

Preview preview(const OptionSet& set, const Tokens& arguments, Grammar grammar) {
  Preview found;
  for (const std::string& token : cli_kit::known_options(set, arguments, grammar)) {
    const std::string name = token.substr(0, token.find('='));
    const std::string value = name.size() < token.size() ? token.substr(name.size() + 1) : "";
    if (name == "--searcher") found.searcher = value;
    if (name == "--profiler") found.profiler = value;
    if (name == "--ds-config") found.ds_config = value;
    found.autotuning |= name == "--autotuning";
    found.help |= name == "--help";
    found.help_all |= name == "--help" && value == "all";
    found.version |= name == "--version";
    for (const char* of_processes : {"--isolation", "--plugin-timeout"}) {
      if (name == of_processes) found.plugin_processes.push_back(token);
    }
  }
  return found;
}

}  // namespace dsat::cli
