// Tables of text for people. Threading: pure functions. Errors: none.
#ifndef DSAT_BASE_TABLE_H_
#define DSAT_BASE_TABLE_H_

#include <string>
#include <vector>

namespace dsat {

// The first row is the heading. Rows may have fewer cells. Two blanks separate columns. The columns in `right` are
// flush right. Widths count characters, not bytes. No line ends in a blank.
std::string format_table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right = {});

}  // namespace dsat

#endif  // DSAT_BASE_TABLE_H_
