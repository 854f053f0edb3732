// Memory of a parameter that is cut among the ranks before an engine has it, while the model is made.
//
// Each rank keeps its part of the bytes. Tensors on the storage keep their shapes; who reads them meets addresses
// without memory, and the process ends with one line (autograd/absent_memory.h). For storages of the CPU.
// Threading: the compute thread; all but is_cut() are collective. Ownership: the storage owns the part, as its memory.
// Errors: PeerLost; c10::OutOfMemoryError.
#ifndef DSAT_TRAINER_ZERO_CUT_STORAGE_H_
#define DSAT_TRAINER_ZERO_CUT_STORAGE_H_

#include <c10/core/Storage.h>

#include "dsat/trainer/comm.h"

namespace dsat::trainer {

bool is_cut(const c10::Storage& storage);
// Rank 0's bytes; of them this rank keeps its part.
void cut(const c10::Storage& storage, Comm& comm);
void make_whole(const c10::Storage& storage, Comm& comm);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_CUT_STORAGE_H_
