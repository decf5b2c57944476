// A CUDA driver without a GPU: the few functions that relay_hw.backend.gpu.cuda calls, on the CPU. A "module" is the path
// of a library whose kernels are C functions of addresses; a launch calls one for every thread, block by block.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

struct Place { unsigned x, y, z; };
static void *library = nullptr;
static int contexts = 0;

extern "C" {
int cuInit(unsigned flags) { return flags ? 1 : 0; }
int cuDeviceGet(int *device, int ordinal) { *device = 7; return ordinal ? 101 : 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? 8 : 6;  // 75, 76: compute capability
    return device == 7 ? 0 : 101;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &contexts; return device == 7 ? 0 : 101; }
int cuCtxSetCurrent(void *context) { contexts++; return context == &contexts ? 0 : 201; }
int cuModuleLoadData(void **module, const char *image) {
    *module = library = dlopen(image, RTLD_NOW);
    return library ? 0 : 200;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = module == library ? dlsym(module, name) : nullptr;
    return *function ? 0 : 500;
}
int cuFuncSetAttribute(void *, int, int) { return 0; }
int cuMemAlloc_v2(uint64_t *pointer, size_t size) {
    *pointer = (uint64_t)(uintptr_t)malloc(size);
    return size && *pointer ? 0 : 2;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) { memcpy((void *)(uintptr_t)to, from, size); return 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { memcpy(to, (const void *)(uintptr_t)from, size); return 0; }
int cuGetErrorString(int, const char **text) { *text = "no such thing"; return 0; }

// Kernels of up to eight addresses: what is behind the last of them is not read by the kernel.
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) {
    if (shared || stream || extra) return 1;
    Place *block = (Place *)dlsym(library, "fake_block"), *thread = (Place *)dlsym(library, "fake_thread");
    int (*count_of)(void *) = (int (*)(void *))dlsym(library, "fake_count");
    void *a[8] = {};
    for (int i = 0; i < count_of(function); i++) a[i] = *(void **)params[i];
    auto kernel = (void (*)(void *, void *, void *, void *, void *, void *, void *, void *))function;
    for (block->z = 0; block->z < gz; block->z++)
        for (block->y = 0; block->y < gy; block->y++)
            for (block->x = 0; block->x < gx; block->x++)
                for (thread->z = 0; thread->z < bz; thread->z++)
                    for (thread->y = 0; thread->y < by; thread->y++)
                        for (thread->x = 0; thread->x < bx; thread->x++)
                            kernel(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    return 0;
}
}
