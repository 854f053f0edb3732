// The table of texts that report an out-of-memory error or another known cause, grouped by tool. log_lines.cc uses it.
#include "outputs/failure_patterns.h"

namespace dsat::host {

namespace {

// The begin of a message: the begin of the line, or the text behind "ERROR: ", "worker-1: ", "[trainer] ", "| ".
#define START R"((?:^ *|: |\] |\| | - ))"
// The code that opens the port where the ranks meet, or any exception, since any library may listen there. A script
// that goes on without its own port prints other text.
#define RENDEZVOUS R"(c10d|TCPStore|[Ss]erver socket|^[\w.]+(?:Error|Exception): )"
// torch's names of device backends.
#define DEVICE R"((?:CUDA|HIP|XPU|NPU|MUSA|MLU|GCU|MPS|MPS backend|PrivateUse1|GPU))"

constexpr auto kNothing = LineMeaning::nothing;
constexpr auto kDevice = LineMeaning::device_memory;
constexpr auto kHost = LineMeaning::host_memory;
constexpr auto kPinned = LineMeaning::pinned_memory;
constexpr auto kAny = Where::anywhere;
constexpr auto kNotStdout = Where::not_stdout;

}  // namespace

const std::vector<FailurePattern>& failure_patterns() {
  static const std::vector<FailurePattern> table{
      // Texts that only look like a cause. These rows come first and protect the line from the next groups.
      {kNothing, kAny, "+ ", R"(^\++ )", "a shell with -x: it prints the script's lines, comments included"},
      {kNothing, Where::not_stderr, "{", R"(^\{.*["'].*\},?$)", "a record that the script prints: data"},
      {kNothing, Where::not_stderr, "['", R"(^\['.*\],?$)", "a list of texts, likewise"},
      {kNothing, Where::not_stderr, "[\"", R"(^\[".*\],?$)", "the same as JSON"},
      {kNothing, kAny, "ibv_", nullptr, "InfiniBand: the limit of locked memory"},
      {kNothing, kAny, "/dev/shm", nullptr, "full shared memory: no smaller batch cures it"},
      {kNothing, kAny, "shared memory", nullptr, "the same, and a kernel's on-chip memory (Triton)"},
      {kNothing, kAny, "OOMKilled", R"(OOMKilled"?[:=] *"?(?:[Ff]alse|0|no)\b)",
       "Docker: the container was not killed"},
      {kNothing, kAny, "is not a failure", nullptr, "TensorFlow: it goes on with less"},
      {kNothing, kAny, "more than 1EB", nullptr, "torch: a size that overflowed; no batch is that large"},
      {kNothing, kAny, "MallocPhysical", nullptr, "Ascend: a failed call, after which torch empties its cache"},

      // Memory of the machine that devices read directly.
      {kPinned, kAny, "Host",
       R"((?:cudaHost|cudaMallocHost|cuMemHost|cuMemAllocHost|hipHost|hipMallocHost)\w*\b.*)"
       R"((?:[Oo]ut of memory|OUT_OF_MEMORY|MemoryAllocation|OutOfMemory))",
       "CUDA, HIP: by the call that failed"},
      {kPinned, kAny, "HostAllocator", R"([Oo]ut of memory.*HostAllocator|HostAllocator.*[Oo]ut of memory)", "torch"},
      {kPinned, kAny, "host_memory_slowpath", nullptr, "Ascend's torch"},
      {kPinned, kAny, "MallocHost", R"(MallocHost.*(?:driver error:out of memory|error code is 207001))", "Ascend"},
      {kPinned, kAny, "(EL0018)", nullptr, "Ascend"},
      {kPinned, kAny, "on host: ", R"(failed to alloc(?:ate)? \d+ bytes on host: .*OUT_OF_MEMORY)", "XLA"},
      {kPinned, kAny, " host alloc ", R"(Failed to (?:CUDA|HIP) host alloc )", "NCCL, RCCL"},
      {kPinned, kAny, "mlock failed to allocate", nullptr, "DeepSpeed's file access"},

      // Exceptions whose name says "out of memory", though it is the machine's.
      {kHost, kAny, "ray.exceptions.", R"(\bray\.exceptions\.OutOfMemoryError: )", "Ray"},
      {kHost, kAny, "java.lang.", R"(\bjava\.lang\.OutOfMemoryError)", "Java, by way of Spark"},

      // torch and what is built on it.
      {kDevice, kAny, "ried to allocate", DEVICE R"( out of memory\.?\s*Tried to allocate)",
       "torch 1.0 on, by the name of the device"},
      {kDevice, kAny, "out of memory (", DEVICE R"( out of memory \(\w+ allocated: )", "torch on Apple's devices"},
      {kDevice, kAny, "out of memory", START R"((?:[\w.]*(?:Error|Exception): )?)" DEVICE R"(\s+out of memory[.!]?$)",
       "torch's words, shortened by a script or a logger"},
      {kDevice, kAny, "OutOfMemoryError", START R"((?:[\w.]+[.:])?OutOfMemoryError(?:: |:?$))",
       "torch 1.13 on, CuPy, dsat-trial: the exception's name"},
      {kDevice, kAny, "OutOfMemoryError'", R"(throwing an instance of '[\w:]*OutOfMemoryError')",
       "C++: an uncaught one"},
      {kDevice, kAny, "Allocation on device", R"(Allocation on device(?: \d+)?(?: would exceed allowed memory|\s*$))",
       "torch with cudaMallocAsync"},
      {kDevice, kAny, "can NOT allocate memory block", nullptr, "Intel's torch: one block is too large"},
      {kDevice, kAny, "not enough GPU video memory", nullptr, "torch on DirectML"},
      {kDevice, kAny, "reached zero", R"(No executable batch size found, reached zero)",
       "accelerate: smaller batches were tried until none was left"},
      {kDevice, kAny, "Triton Error", R"(Triton Error \[(?:CUDA|HIP)\]: out of memory)", "torch.compile"},
      {kDevice, kAny, "NVML_SUCCESS", R"(NVML_SUCCESS == r INTERNAL ASSERT FAILED at .*CUDACachingAllocator)",
       "torch: its report of a shortage asks a driver that does not answer"},
      {kDevice, kAny, "at line ", R"(^Error out of memory at line \d+ in file)", "bitsandbytes"},

      // The driver, and the kernels that call it.
      {kDevice, kAny, "ut of memory",
       R"((?i)\b(?:CUDA|HIP|ROCm|XPU|MUSA)\s?(?:driver |runtime |API |kernel )?error\s*\d*\s*(?:[(\[][^)\]]*[)\]])?)"
       R"((?: (?:at|in)(?: file)? [^ ]+(?: in line \d+)?)?\s*[:,]\s*'?out of memory)",
       "CUDA, HIP: kernels, gloo, torch.AcceleratorError"},
      {kDevice, kAny, "rror", R"(\b[Ee]rror\s*[=:]?\s*\(?2\)?\s*:?\s*'?out of memory)", "the CUDA runtime's number 2"},
      {kDevice, kAny, "failed", R"(\b(?:cuda|hip|cu)(?:Malloc|Mem)\w*(?:\(.*\))? failed.*out of memory)",
       "cudaMalloc and its like"},
      {kDevice, kAny, "cudaErrorMemoryAllocation", nullptr, "the CUDA runtime's name of it"},
      {kDevice, kAny, "ERROR_OUT_OF_MEMORY", R"(\b(?:CUDA|HIP)_ERROR_OUT_OF_MEMORY)", "the CUDA driver, XLA"},
      {kDevice, kAny, "rrorOutOfMemory", R"(\bhipErrorOutOfMemory|\bkIO\w*ErrorOutOfMemory)", "HIP, Metal"},
      {kDevice, kAny, "HIP_ERROR_OutOfMemory", nullptr, "XLA on ROCm"},
      {kDevice, kAny, "OUT_OF_", R"(\b(?:UR_RESULT|PI|ZE_RESULT|PI_RESULT)_ERROR_OUT_OF_DEVICE_MEMORY)",
       "oneAPI, Level Zero"},
      {kHost, kAny, "OUT_OF_", R"(\b(?:UR_RESULT|PI|ZE_RESULT|PI_RESULT)_ERROR_OUT_OF_HOST_MEMORY)",
       "oneAPI, Level Zero"},

      // Accelerators with tools of their own.
      {kDevice, kAny, "PT_DEVMEM", R"(PT_DEVMEM (?:Allocation failed|OOM))", "Gaudi"},
      {kDevice, kAny, "PT_SYNHELPER", R"(PT_SYNHELPER .*[Aa]llocation of size ::\d+ failed)", "Gaudi"},
      {kDevice, kAny, "EL0004", R"(\bEL0004\b.*Failed to allocate memory)", "Ascend"},
      {kDevice, kAny, "driver error:out of memory", nullptr, "Ascend"},
      {kDevice, kAny, "error code is 207001", nullptr, "Ascend's torch"},
      {kDevice, kAny, "Malloc device memory failed", nullptr, "MindSpore"},
      {kDevice, kAny, "NRT_RESOURCE in nrt_", nullptr, "Neuron"},
      {kDevice, kAny, "ut of memory error on ", R"(Out of memory error on (?:GPU|XPU|NPU|GPU Virtual Memory) \d)",
       "Paddle"},
      {kDevice, kAny, "BadAlloc'", R"(throwing an instance of 'paddle::memory::allocation::BadAlloc')", "Paddle"},

      // Libraries.
      {kDevice, kAny, "STATUS_ALLOC_FAILED", R"(\b[A-Z]+_STATUS_ALLOC_FAILED)", "cuBLAS, cuDNN, cuSOLVER, cuSPARSE"},
      {kDevice, kAny, "the resource allocation failed", nullptr, "cuBLAS's words for it"},
      {kDevice, kAny, "DEVICE_ALLOCATION_FAILED", R"(DNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)",
       "cuDNN 9, hipDNN"},
      {kHost, kAny, "HOST_ALLOCATION_FAILED", R"(DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)", "cuDNN 9, hipDNN"},
      {kDevice, kAny, "FFT_ALLOC_FAILED", R"(\b(?:CU|HIP|ROC)FFT_ALLOC_FAILED)", "cuFFT"},
      {kDevice, kAny, "miopenStatusAllocFailed", nullptr, "MIOpen"},
      {kDevice, kAny, "rocblas_status_memory_error", nullptr, "rocBLAS"},
      {kDevice, kAny, "failure", R"((?i)(?:cuda|hip) failure (?:\d+ )?'out of memory')", "NCCL, RCCL"},
      {kDevice, kAny, " calloc ", R"(Failed to (?:CUDA|HIP) calloc )", "NCCL, RCCL"},
      {kDevice, kAny, "requested buffer", R"(Failed to allocate memory for requested buffer of size \d)",
       "ONNX Runtime"},

      // XLA and TensorFlow.
      {kDevice, kAny, "xhausted: ", R"(Resource exhausted: (?:OOM|Out of memory))", "TensorFlow"},
      {kDevice, kAny, "RESOURCE_EXHAUSTED", R"(RESOURCE_EXHAUSTED: (?:OOM|Out of memory|[Ff]ailed to allocate))",
       "XLA"},
      {kDevice, kAny, "memory space hbm", R"(Ran out of memory in memory space hbm)", "XLA on TPUs"},
      {kDevice, kAny, "OOM when allocating", R"(OOM when allocating tensor with shape)", "TensorFlow"},
      {kDevice, kAny, "_bfc) ran out", R"(Allocator \(\w+_bfc\) ran out of memory trying to allocate)", "TensorFlow"},

      // Memory of the machine.
      {kHost, kAny, "CPUAllocator: ", R"(DefaultCPUAllocator: (?:can't allocate|not enough) memory)",
       "torch's CPU allocator"},
      {kHost, kAny, "posix_memalign", R"(posix_memalign\(.*\) == 0\. 12 vs 0)", "torch 1.0's CPU allocator"},
      {kHost, kAny, "nable to allocate", R"(Unable to allocate [\d.]+ ?(?:[KMGTPE]i?)?(?:B|bytes) for an array)",
       "numpy"},
      {kHost, kNotStdout, "MemoryError", START R"((?:[\w.]+\.)?_?(?:Array|Arrow)?MemoryError(?:: |:?$))",
       "Python, numpy, Arrow"},
      {kHost, kAny, "bad_alloc", R"(throwing an instance of '(?:std::)?bad_alloc'|what\(\): +std::bad_alloc)", "C++"},
      {kHost, kNotStdout, "bad_alloc", START R"((?:\w+: )?std::bad_alloc$)", "C++, by way of Python"},
      {kHost, kAny, "memory allocation of ", R"(^memory allocation of \d+ bytes failed)", "Rust"},
      {kHost, kAny, "libgomp: ", R"(libgomp: Out of memory allocating)", "OpenMP"},
      {kHost, kAny, "OpenBLAS error: ", R"(OpenBLAS error: Memory allocation still failed)", "OpenBLAS"},
      {kHost, kAny, "[Errno 12]", R"(\[Errno 12\] Cannot allocate memory)", "Python: errno 12"},
      {kHost, kAny, "ork: ", R"(\bfork: (?:retry: )?Cannot allocate memory)", "a shell"},
      {kHost, kAny, "unable to mmap", R"(unable to mmap \d+ bytes .*Cannot allocate memory)", "torch: a mapped file"},

      // Programs that kill a process for its use of memory.
      {kHost, kAny, "oom", R"(Detected [1-9]\d* oom[_-]kill event)", "Slurm"},
      {kHost, kAny, "Out Of Memory", R"(\btasks? [\d,-]+: Out Of Memory)", "srun"},
      {kHost, kAny, "xceeded", R"(slurmstepd: error:.*[Ee]xceeded .*memory limit)", "Slurm, older"},
      {kHost, kAny, "TERM_MEMLIMIT", nullptr, "LSF"},
      {kHost, kAny, "job killed: ", R"(PBS: job killed: v?mem \d+\w* exceeded limit)", "PBS"},
      {kHost, kAny, "gone over ", R"(Job has gone over (?:cgroup )?memory limit)", "HTCondor"},
      {kHost, kAny, "memory budget", R"(Worker exceeded \d+% memory budget)", "Dask"},
      {kHost, kAny, "ut of memory: Kill", R"([Oo]ut of memory: Kill(?:ed)? process \d+)", "the kernel"},
      {kHost, kAny, "oom-kill:", R"(\boom-kill:constraint=)", "the kernel"},
      {kHost, kAny, "by the OOM killer", R"(A process of this unit has been killed by the OOM killer)", "systemd"},
      {kHost, kAny, "OOMKilled", R"((?i:reason"?): +"?OOMKilled|OOMKilled"?[:=] *"?[Tt]rue)", "Kubernetes, Docker"},

      // Other causes that decide an outcome.
      {LineMeaning::address_in_use, kNotStdout, "EADDRINUSE", RENDEZVOUS, "sockets"},
      {LineMeaning::address_in_use, kNotStdout, "ddress already in use", RENDEZVOUS, "sockets"},
      {LineMeaning::killed, kAny, "return code = -9", nullptr, "deepspeed"},
      {LineMeaning::killed, kAny, "SIGKILL", nullptr, "torchrun"},
      {LineMeaning::killed, kAny, "exitcode", R"(exitcode *: -9\b)", "torchrun"},
      {LineMeaning::killed, kAny, "Killed", "^Killed", "a shell"},
      {LineMeaning::killed, kAny, "Killed", R"(: line \d+: +\d+ Killed\b)", "bash, in a script"},
      {LineMeaning::killed, kAny, "EXIT STRING: Killed", nullptr, "mpirun of MPICH, Intel MPI"},
      {LineMeaning::killed, kAny, ": Killed", R"(^srun: .*\btasks? [\d,-]+: Killed)", "srun"},
      {LineMeaning::killed, kAny, "DataLoader worker",
       R"(DataLoader worker \(pid.*(?:killed by signal: Killed|exited unexpectedly))", "torch's loader"},

      // Lines of a launcher, of a library at exit, and of a rank that only lost its peer.
      {LineMeaning::epilogue, kAny, "launch.py:", R"(launch\.py:\d+:sigkill_handler)", "deepspeed"},
      {LineMeaning::epilogue, kAny, "exits with return code", nullptr, "deepspeed"},
      {LineMeaning::epilogue, kAny, "failed (exitcode", nullptr, "torchrun"},
      {LineMeaning::epilogue, kAny, "ChildFailedError", nullptr, "torchrun"},
      {LineMeaning::launcher, kAny, "[launch.py:", nullptr, "deepspeed"},
      {LineMeaning::launcher, kAny, "[runner.py:", nullptr, "deepspeed"},
      {LineMeaning::launcher, kAny, "Setting OMP_NUM_THREADS", nullptr, "torchrun"},
      {LineMeaning::launcher, kAny, "****", R"(^\*+ *$)", "torchrun, around that line"},
      {LineMeaning::launcher, kAny, "torch.distributed.run:", nullptr, "torchrun"},
      {LineMeaning::launcher, kAny, "torch/distributed/run.py:", nullptr, "torchrun"},
      {LineMeaning::launcher, kAny, "torch.distributed.elastic", nullptr, "torchrun"},
      {LineMeaning::launcher, kAny, "torch/distributed/elastic", nullptr, "torchrun"},
      {LineMeaning::launcher, kAny, "srun: ", "^srun: ", "Slurm"},
      {LineMeaning::launcher, kAny, "slurmstepd", "^slurmstepd", "Slurm"},
      {LineMeaning::launcher, Where::not_stdout, "Terminated", "^Terminated$", "a shell, of what Slurm ended"},
      {LineMeaning::remark, kAny, "%|", R"(\d%\|)", "tqdm's bar"},
      {LineMeaning::remark, kAny, "ProcessGroup", R"(ProcessGroup\w*\.cpp.*Warning:)", "torch 2.4 on: groups at exit"},
      {LineMeaning::remark, kAny, "resource_tracker", nullptr, "Python: what children left"},
      {LineMeaning::remark, kAny, "wandb: ", "^wandb: ", "Weights & Biases: its summary"},
      {LineMeaning::peer_lost, kAny, " by peer", R"(Connection (?:closed|reset) by peer)", "gloo, NCCL"},
      {LineMeaning::peer_lost, kAny, "ncclRemoteError", nullptr, "NCCL"},
      {LineMeaning::peer_lost, kAny, "NCCL communicator was aborted", nullptr, "NCCL"},
  };
  return table;
}

const std::vector<const char*>& line_prefixes() {
  static const std::vector<const char*> prefixes{
      "\xEF\xBF\xBD",                     // a byte order mark of another encoding
      R"(\[[\w]*\d+\]:\s?)",              // torch: [rank3]: ; torchrun --tee: [default0]:
      R"(\[\d+,\d+\](?:<\w+>)?: ?)",      // mpirun --tag-output
      R"(\s*\d+: )",                      // srun --label
      R"(\s*\| )",                        // Python's exception groups
      R"(\(\w[^()]* pid=\d+[^()]*\) ?)",  // Ray
      R"(\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?:? ?)",  // a time
      R"(\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\]?(?:: ?| |$))",             // a level
  };
  return prefixes;
}

#undef START
#undef RENDEZVOUS
#undef DEVICE

}  // namespace dsat::host
