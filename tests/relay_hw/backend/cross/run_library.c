/* Runs one function of a host library with TVM's runtime alone, without Python: what a board does.

   run_library LIBRARY FUNCTION OUTPUT INPUT...; a tensor's file: code, bits, rank (int32), sizes (int64), elements. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tvm/ffi/c_api.h>

static void fail(const char* what) {
  TVMFFIObjectHandle raised = NULL;
  TVMFFIErrorMoveFromRaised(&raised);
  fprintf(stderr, "%s", what);
  if (raised != NULL) {
    TVMFFIErrorCell* cell = (TVMFFIErrorCell*)((char*)raised + sizeof(TVMFFIObject));
    fprintf(stderr, ": %.*s", (int)cell->message.size, cell->message.data);
  }
  fprintf(stderr, "\n");
  exit(1);
}

static TVMFFIAny object(int32_t type, TVMFFIObjectHandle handle) {
  TVMFFIAny any;
  memset(&any, 0, sizeof any);
  any.type_index = type;
  any.v_obj = handle;
  return any;
}

static TVMFFIAny integer(int64_t value) {
  TVMFFIAny any;
  memset(&any, 0, sizeof any);
  any.type_index = kTVMFFIInt;
  any.v_int64 = value;
  return any;
}

static TVMFFIAny text(const char* value) {
  TVMFFIAny any;
  memset(&any, 0, sizeof any);
  any.type_index = kTVMFFIRawStr;
  any.v_c_str = value;
  return any;
}

static TVMFFIAny call(TVMFFIObjectHandle function, TVMFFIAny* args, int count, const char* what) {
  TVMFFIAny result;
  memset(&result, 0, sizeof result);
  if (function == NULL || TVMFFIFunctionCall(function, args, count, &result) != 0) fail(what);
  return result;
}

static TVMFFIObjectHandle global(const char* name) {
  TVMFFIByteArray key = {name, strlen(name)};
  TVMFFIObjectHandle found = NULL;
  if (TVMFFIFunctionGetGlobal(&key, &found) != 0 || found == NULL) fail(name);
  return found;
}

static TVMFFIObjectHandle member(TVMFFIAny module, const char* name) {
  TVMFFIAny args[3] = {module, text(name), integer(1)};
  args[2].type_index = kTVMFFIBool;
  TVMFFIAny found = call(global("ffi.ModuleGetFunction"), args, 3, name);
  if (found.type_index != kTVMFFIFunction) fail(name);
  return found.v_obj;
}

static void take(void* target, size_t size, FILE* file) {
  if (fread(target, 1, size, file) != size) fail("input must be whole");
}

static TVMFFIAny read_tensor(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) fail(path);
  int32_t head[3];
  take(head, sizeof head, file);
  DLManagedTensor* managed = calloc(1, sizeof *managed);
  DLTensor* tensor = &managed->dl_tensor;
  tensor->device.device_type = kDLCPU;
  tensor->dtype.code = (uint8_t)head[0];
  tensor->dtype.bits = (uint8_t)head[1];
  tensor->dtype.lanes = 1;
  tensor->ndim = head[2];
  tensor->shape = calloc(head[2] + 1, sizeof(int64_t));
  take(tensor->shape, head[2] * sizeof(int64_t), file);
  size_t size = (head[1] + 7) / 8;
  for (int axis = 0; axis < head[2]; axis++) size *= tensor->shape[axis];
  /* Compiled code reads whole vectors from boundaries of 64 bytes. */
  if (posix_memalign(&tensor->data, 64, (size + 63) / 64 * 64) != 0) fail("memory");
  take(tensor->data, size, file);
  fclose(file);
  TVMFFIObjectHandle made = NULL;
  if (TVMFFITensorFromDLPack(managed, 0, 0, &made) != 0) fail(path);
  return object(kTVMFFITensor, made);
}

static void write_tensor(const char* path, TVMFFIAny value) {
  if (value.type_index != kTVMFFITensor) fail("result must be a tensor");
  DLTensor* tensor = (DLTensor*)((char*)value.v_obj + sizeof(TVMFFIObject));
  FILE* file = fopen(path, "wb");
  if (file == NULL) fail(path);
  int32_t head[3] = {tensor->dtype.code, tensor->dtype.bits, tensor->ndim};
  size_t size = (tensor->dtype.bits + 7) / 8;
  for (int axis = 0; axis < tensor->ndim; axis++) size *= tensor->shape[axis];
  fwrite(head, 1, sizeof head, file);
  fwrite(tensor->shape, sizeof(int64_t), tensor->ndim, file);
  fwrite((char*)tensor->data + tensor->byte_offset, 1, size, file);
  fclose(file);
}

int main(int count, char** words) {
  if (count < 4) fail("usage: run_library LIBRARY FUNCTION OUTPUT INPUT...");
  if (dlopen("libtvm_runtime.so", RTLD_NOW | RTLD_GLOBAL) == NULL) fail(dlerror());
  /* The machine that runs a program's functions; older runtimes hold it themselves. */
  dlopen("libtvm_runtime_extra.so", RTLD_NOW | RTLD_GLOBAL);
  TVMFFIAny path = text(words[1]);
  TVMFFIAny library = call(global("ffi.ModuleLoadFromFile"), &path, 1, "load");
  TVMFFIAny machine = call(member(library, "vm_load_executable"), NULL, 0, "vm_load_executable");
  TVMFFIAny device[3] = {integer(kDLCPU), integer(0), integer(2)};
  call(member(machine, "vm_initialization"), device, 3, "vm_initialization");
  TVMFFIAny args[16];
  for (int at = 4; at < count && at < 20; at++) args[at - 4] = read_tensor(words[at]);
  write_tensor(words[3], call(member(machine, words[2]), args, count - 4, words[2]));
  return 0;
}
