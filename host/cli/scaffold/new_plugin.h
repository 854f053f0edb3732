// The files of a new searcher: an example under another name.
//
// Threading: pure functions. Errors: dsat::Error that says which name would do.
#ifndef DSAT_CLI_SCAFFOLD_NEW_PLUGIN_H_
#define DSAT_CLI_SCAFFOLD_NEW_PLUGIN_H_

#include <string>
#include <vector>

namespace dsat::cli {

struct NewFile {
  std::string path;  // in the plugin's folder
  std::string text;
};

struct NewPlugin {
  std::vector<NewFile> files;
  std::string build_and_test;  // one line for a shell in the plugin's folder; needs dsat-host in PATH
  std::string plugin;          // what --searcher takes, in that folder
};

std::vector<std::string> languages_of_plugins();

// `language`: one of languages_of_plugins().
NewPlugin new_plugin(const std::string& name, const std::string& language);

}  // namespace dsat::cli

#endif  // DSAT_CLI_SCAFFOLD_NEW_PLUGIN_H_
