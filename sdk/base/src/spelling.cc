// Edit distances by dynamic programming over prefixes, row by row.
#include "dsat/base/spelling.h"

#include <algorithm>
#include <bitset>

namespace dsat {
namespace {

// The letters of a text, one bit each. Some letters share a bit.
std::bitset<64> letters_of(std::string_view text) {
  std::bitset<64> letters;
  for (const char c : text) letters.set(static_cast<unsigned char>(c) % 64);
  return letters;
}

// A lower bound of the distance: a letter that only one text has costs an edit.
size_t least_distance(const std::bitset<64>& a, const std::bitset<64>& b) {
  return std::max((a & ~b).count(), (b & ~a).count());
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b, size_t enough) {
  std::vector<size_t> before(b.size() + 1);  // the row before the previous one, for swapped neighbours
  std::vector<size_t> previous(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  size_t least_before = 0;  // the least entry of the previous row
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    // Later rows come from the last two rows, and their entries are no smaller.
    const size_t least = *std::min_element(row.begin(), row.end());
    if (std::min(least, least_before) >= enough) return enough;
    least_before = least;
    before.swap(previous);
    previous.swap(row);
  }
  return std::min(previous[b.size()], enough);
}

size_t slip_tolerance(std::string_view typed) { return std::max<size_t>(2, typed.size() / 4); }

std::string_view nearest_name(std::string_view typed, const std::vector<std::string_view>& known, size_t tolerance) {
  std::string_view nearest;
  size_t limit = tolerance + 1;
  const std::bitset<64> letters = letters_of(typed);
  for (const std::string_view name : known) {
    // A difference in length costs as many edits. So a very long text is skipped at once.
    if (std::max(typed.size(), name.size()) - std::min(typed.size(), name.size()) >= limit) continue;
    if (least_distance(letters, letters_of(name)) >= limit) continue;
    const size_t distance = edit_distance(typed, name, limit);
    if (distance >= limit) continue;
    limit = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace dsat
