// Every error names its place and shows the right form.
#include "slots/hostfile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <system_error>

#include "dsat/base/affix.h"
#include "dsat/base/files.h"
#include "dsat/base/numbers.h"
#include "dsat/base/split.h"
#include "dsat/base/utf8.h"
#include "dsat/error.h"

namespace dsat::host {

namespace {

namespace fs = std::filesystem;

// No machine has more slots, so a larger number is a typing error.
constexpr int kMostSlots = 4096;
constexpr size_t kMaxHostfileBytes = size_t{1} << 20;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string shown(std::string_view text) { return shortened(printable_line(text), 80); }

// Returns NAME of USER@NAME.
std::string machine_of(const std::string& host) { return host.substr(host.find('@') + 1); }

// `words`: of a line that is neither blank nor a comment. `place`: the begin of an error's message.
HostEntry parse_entry(const std::vector<std::string>& words, const std::string& line, const std::string& place) {
  const Error malformed(
      fmt::format("{}'{}' is no host: write NAME slots=N, such as worker-1 slots=4", place, shown(line)));
  constexpr std::string_view kSlots = "slots=";
  if (words.size() < 2 || !starts_with(words[1], kSlots)) throw malformed;
  for (size_t i = 2; i < words.size(); ++i) {
    if (!starts_with(words[i], "max_slots=") && !starts_with(words[i], "max-slots=")) throw malformed;
  }
  const std::string& name = words[0];
  const std::string number = words[1].substr(kSlots.size());
  const std::optional<int64_t> slots = parse_integer(number);
  if (!slots) throw malformed;
  if (*slots < 1 || *slots > kMostSlots) {
    throw Error(
        fmt::format("{}{} has slots={}: give 1 to {}, or remove the line", place, name, shown(number), kMostSlots));
  }
  const std::string user = name.substr(0, name.size() - machine_of(name).size());
  const bool is_odd = user == "@" || machine_of(name).empty() || machine_of(name).find('@') != std::string::npos;
  if (is_odd || name.find_first_of(":,=") != std::string::npos || name[0] == '-') throw malformed;
  return {name, static_cast<int>(*slots), 0};
}

std::string own_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

std::vector<HostEntry> read_hostfile(const fs::path& file) {
  return parse_hostfile(read_hostfile_text(file), file.string());
}

std::vector<HostEntry> read_hostfile(const fs::path& file, const std::optional<std::string>& text) {
  return text ? parse_hostfile(*text, file.string()) : read_hostfile(file);
}

std::string read_hostfile_text(const fs::path& file) {
  std::error_code error;
  if (fs::is_directory(file, error)) throw Error(fmt::format("hostfile {}: is a folder", file.string()));
  FileText text = try_read_input(file, kPipePatience, kMaxHostfileBytes);
  if (!text.ok()) {
    throw Error(fmt::format("hostfile {}: cannot be read ({}): give a file of lines NAME slots=N", file.string(),
                            text.problem));
  }
  return std::move(text.bytes);
}

std::vector<HostEntry> parse_hostfile(std::string_view text, const std::string& name) {
  std::vector<HostEntry> hosts;
  std::map<std::string, int> line_of;                          // line of each host
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // editors of Windows put it first
  if (starts_with(text, kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    const std::string place = fmt::format("{}:{}: ", name, number);
    HostEntry entry = parse_entry(words, line, place);
    entry.line = number;
    if (const auto [first, is_new] = line_of.emplace(machine_of(entry.name), number); !is_new) {
      throw Error(fmt::format("{}host {} is on line {} already: keep one line for each host", place, entry.name,
                              first->second));
    }
    hosts.push_back(std::move(entry));
  }
  if (hosts.empty()) {
    throw Error(fmt::format("hostfile {}: names no host: write lines NAME slots=N", name));
  }
  return hosts;
}

std::vector<NodeFilter> parse_node_filters(std::string_view text, const std::string& option) {
  const Error malformed(
      fmt::format("{} '{}' names no nodes: write NODE[:SLOT,SLOT...][@NODE...], such as worker-0@worker-1:0,2", option,
                  shown(text)));
  std::vector<NodeFilter> filters;
  for (const std::string& node : split(text, '@')) {
    const size_t colon = node.find(':');
    NodeFilter filter{node.substr(0, colon), {}};
    if (colon != std::string::npos) filter.slots = split(std::string_view(node).substr(colon + 1), ',');
    const bool hollow = std::any_of(filter.slots.begin(), filter.slots.end(), [](const auto& s) { return s.empty(); });
    if (filter.host.empty() || hollow || node.find_first_of(" \t") != std::string::npos) throw malformed;
    filters.push_back(std::move(filter));
  }
  return filters;
}

bool names_a_user(const std::string& host) { return host.find('@') != std::string::npos; }

bool is_this_machine(const std::string& host) {
  const std::string machine = machine_of(host);
  if (machine == "localhost" || machine == "127.0.0.1" || machine == "::1") return true;
  const std::string own = own_name();
  const auto first_label = [](const std::string& name) { return name.substr(0, name.find('.')); };
  const bool one_is_short = own.find('.') == std::string::npos || machine.find('.') == std::string::npos;
  return machine == own || (one_is_short && !own.empty() && first_label(machine) == first_label(own));
}

}  // namespace dsat::host
