// A YAML or JSON file as JSON values, with line and column of each value for messages.
//
// Scalars have the types of YAML's core schema: `1e-5` is a number, `yes` a text. Anchors, aliases and merge keys are
// resolved. Threading: plain values. Errors: dsat::Error "FILE:LINE:COLUMN: ..." for unreadable text; for more than one
// document, 100 levels, 100,000 values or 4 MiB; for tabs as indentation, duplicate keys, an alias inside itself,
// unknown tags, and numbers that are not finite.
#ifndef DSAT_YAML_YAML_FILE_H_
#define DSAT_YAML_YAML_FILE_H_

#include <filesystem>
#include <map>
#include <string>

#include "dsat/error.h"

namespace dsat {

class YamlFile {
 public:
  struct Position {
    int line = 1, column = 1;
  };

  static YamlFile load(const std::filesystem::path& file);
  // Parses `text`; `file` stands in messages.
  static YamlFile parse(const std::string& text, const std::filesystem::path& file);

  const std::filesystem::path& file() const { return file_; }
  const Json& root() const { return root_; }  // an object
  // "deepspeed.yaml:12:3" for the value at a dotted key ("resources.slots_per_trial"), or for its nearest parent.
  std::string where(const std::string& key) const;
  // Throws Error "<where>: <key> <complaint>".
  [[noreturn]] void refuse(const std::string& key, const std::string& complaint) const;

  // The value at a key. Absent or null: nullptr or an empty text. A value of another type is refused.
  const Json* find(const std::string& key) const;
  const Json* find_object(const std::string& key) const;
  std::string text(const std::string& key) const;
  // The value at a key with numbers and truth values as the file spells them, so that 1.10 stays 1.10.
  const Json* find_spelled(const std::string& key) const;

 private:
  std::filesystem::path file_;
  Json root_, spelled_root_;
  std::map<std::string, Position> places_;
};

}  // namespace dsat

#endif  // DSAT_YAML_YAML_FILE_H_
