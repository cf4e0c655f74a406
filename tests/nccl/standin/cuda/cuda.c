/* A stand-in for CUDA's driver library (libcuda.so.1): which device a thread uses. */
static _Thread_local int device = -1;

__attribute__((visibility("default"))) void standinSetDevice(int number) {
  device = number;
}

__attribute__((visibility("default"))) int cuCtxGetDevice(int* number) {
  *number = device;
  return device < 0;
}
