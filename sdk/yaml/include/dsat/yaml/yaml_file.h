// A YAML file (JSON is YAML too) as JSON values, with the place of each for messages.
//
// Scalars have the types of YAML's core schema, so `1e-5` is a number and `yes` a text; anchors, aliases and merge keys
// are resolved. Threading: plain values. Errors: dsat::Error "FILE:LINE:COLUMN: ..." for text that cannot be read; for
// more than one document, 100 levels, 100,000 values or 4 MiB; for tabs that indent, a key given twice, an alias that
// holds itself, unknown tags, and numbers that are not finite.
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
  // The same of its text; `file` stands in messages.
  static YamlFile parse(const std::string& text, const std::filesystem::path& file);

  const std::filesystem::path& file() const { return file_; }
  const Json& root() const { return root_; }  // an object
  // "deepspeed.yaml:12:3" of the value at a dotted key ("resources.slots_per_trial"), or of what holds it.
  std::string where(const std::string& key) const;
  // Throws Error "<where>: <key> <complaint>".
  [[noreturn]] void refuse(const std::string& key, const std::string& complaint) const;

  // Readers of the value at a key. No value, or null, gives nullptr or an empty text; a value of another type is
  // refused.
  const Json* find(const std::string& key) const;
  const Json* find_object(const std::string& key) const;
  std::string text(const std::string& key) const;
  // The value at a key for who needs words: a number or truth value in it is the text that the file has, so that 1.10
  // stays 1.10.
  const Json* find_spelled(const std::string& key) const;

 private:
  std::filesystem::path file_;
  Json root_, spelled_root_;
  std::map<std::string, Position> places_;
};

}  // namespace dsat

#endif  // DSAT_YAML_YAML_FILE_H_
