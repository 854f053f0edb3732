// The files of the examples of plugins, as they are in the source tree.
//
// Threading: constant data. Errors: none.
#ifndef DSAT_CLI_SCAFFOLD_TEMPLATES_H_
#define DSAT_CLI_SCAFFOLD_TEMPLATES_H_

#include <vector>

namespace dsat::cli {

struct Template {
  const char* language;
  const char* path;  // in the example's folder
  const char* text;
};
const std::vector<Template>& templates();

}  // namespace dsat::cli

#endif  // DSAT_CLI_SCAFFOLD_TEMPLATES_H_
