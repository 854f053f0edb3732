// A copy of a YAML file with some other values.
//
// Readers of YAML differ (is `no` a text?), so what is not changed keeps its spelling: the lines of every other entry
// at the top, and the words of other values in a changed entry, whose comments are lost. If that is not possible (JSON,
// an anchor in a changed entry), all entries are written anew. Threading: a plain value. Errors: dsat::Error, one line.
#ifndef DSAT_YAML_YAML_COPY_H_
#define DSAT_YAML_YAML_COPY_H_

#include <string>
#include <utility>
#include <vector>

#include "dsat/yaml/yaml_file.h"

namespace dsat {

class YamlCopy {
 public:
  // `text`: of the file, which YamlFile::parse takes.
  YamlCopy(std::string text, std::filesystem::path file) : text_(std::move(text)), file_(std::move(file)) {}

  // Changes the value at a dotted key, or adds it; `value` is a text, a number or a truth value.
  void set(const std::string& key, const Json& value) { changes_.emplace_back(key, value); }
  void erase(const std::string& key) { changes_.emplace_back(key, nullptr); }

  // Throws Error if the values cannot be changed, as in an entry that is an alias.
  std::string text() const;

 private:
  std::string text_;
  std::filesystem::path file_;
  std::vector<std::pair<std::string, Json>> changes_;  // null: the key is left out
};

}  // namespace dsat

#endif  // DSAT_YAML_YAML_COPY_H_
