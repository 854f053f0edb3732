#!/bin/sh
# Stands in for a training script: reads the configuration that it is given, follows DeepSpeed's trial protocol and
# makes up its measurements from the micro batch. Above 24 samples it runs out of memory.
config=$2
value() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" "$config" | head -n 1; }
micro_batch=$(value train_micro_batch_size_per_gpu)

if [ "$micro_batch" -gt 24 ]; then
  echo "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB" >&2
  exit 1
fi
if grep -q '"profile": *true' "$config"; then
  echo '{"num_params": 1000000, "trainable_num_params": 1000000, "activation_mem_per_gpu": 1000000}' \
    > "$(value model_info_path)"
  exit 0
fi
# Time per step grows with the batch, less than in proportion.
latency=$((10000 + 1000 * micro_batch))
batch=$(value train_batch_size)
throughput=$((batch * 1000000 / latency))
echo "{\"forward\": $((latency / 4)), \"backward\": $((latency / 2)), \"step\": $((latency / 4))," \
  "\"latency\": $latency, \"throughput\": $throughput, \"FLOPS_per_gpu\": $((throughput * 1000000))}" \
  > "$(value metric_path)"
