// Builds a tree from the events of a reader of JSON or Hjson: nlohmann's own builder keeps the last of two equal keys,
// and has no limit of depth.
//
// A set beside each object finds equal keys, because a lookup in an ordered object is linear. Threading: one thread.
// Errors: dsat::Error with the source and the place in the text.
#ifndef DSAT_CONFIG_SRC_JSON_TREE_H_
#define DSAT_CONFIG_SRC_JSON_TREE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dsat/config/json.h"

namespace dsat::config {

class JsonTree final : public nlohmann::json_sax<Json> {
 public:
  // `consumed`: the number of bytes that the reader has read, because events carry no position.
  JsonTree(std::string_view text, const std::string& source, const size_t* consumed)
      : text_(text), source_(source), consumed_(consumed) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // no such thing in JSON text
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override;
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) override;

 private:
  template <typename Value>
  bool add(Value&& value) {
    place(Json(std::forward<Value>(value)));
    return true;
  }

  Json* place(Json value);
  bool open(Json container);
  bool close();
  std::string path() const;
  [[noreturn]] void fail(size_t offset, const std::string& what) const;
  [[noreturn]] void explain(size_t position, const std::string& report) const;
  [[noreturn]] void explain_end(size_t last) const;
  [[noreturn]] void explain_token(size_t begin, std::string_view word, const std::string& report) const;

  std::string_view text_;
  const std::string& source_;
  const size_t* consumed_;
  Json root_;
  bool root_begun_ = false;
  std::vector<Json*> open_;                            // innermost last
  std::vector<std::string> keys_;                      // the current member of each open container
  std::vector<std::unordered_set<std::string>> seen_;  // the members so far of each open container
};

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_JSON_TREE_H_
