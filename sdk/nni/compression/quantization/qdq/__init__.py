"""Export of quantized models to ONNX with pairs of QuantizeLinear and DequantizeLinear."""
