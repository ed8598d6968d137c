NPROC_PER_NODE=2 NNODES=4 NODE_RANK=$R srun megatron sft --num_layers 8 \
  --hidden_size 1024 --num_attention_heads 16 --seq_length 1024 --vocab_size 32000 \
  --ffn_hidden_size 4096 --tensor_model_parallel_size 2 --global_batch_size 16
