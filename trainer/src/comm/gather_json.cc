// Gathers JSON texts of different lengths with the collectives that there are: a sum over fp32 numbers. A number holds
// one byte of text, which fp32 stores exactly.
#include "comm/gather_json.h"

#include <ATen/ops/zeros.h>

#include <string>

namespace dsat::trainer {

// Every rank writes its bytes into its own row of a table and zeros elsewhere, so that the sum holds all rows.
std::vector<Json> gather_json(Comm& comm, const Json& mine) {
  if (comm.size() == 1) return {mine};
  const std::string text = mine.dump();
  const auto columns = static_cast<int64_t>(max_over_ranks(comm, {static_cast<double>(text.size())})[0]);
  at::Tensor table = at::zeros({comm.size(), columns}, at::TensorOptions().dtype(at::kFloat));
  float* const row = table.data_ptr<float>() + comm.rank() * columns;
  for (size_t i = 0; i < text.size(); ++i) row[i] = static_cast<float>(static_cast<uint8_t>(text[i]));
  if (const auto pending = comm.all_reduce_sum(table)) pending->wait();
  std::vector<Json> all;
  for (int rank = 0; rank < comm.size(); ++rank) {
    std::string bytes;
    const float* const data = table.data_ptr<float>() + rank * columns;
    for (int64_t i = 0; i < columns && data[i] != 0; ++i)
      bytes.push_back(static_cast<char>(static_cast<uint8_t>(data[i])));
    all.push_back(Json::parse(bytes));  // JSON text holds no zero byte
  }
  return all;
}

}  // namespace dsat::trainer
