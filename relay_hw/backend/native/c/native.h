// The values of compiled Relay programs: counted objects and their memory, failures, calls that nest deep.
//
// The generated code includes it once, after RHW_MOST_ARGS, the most parameters of a function, and tables by number:
// rhw_names of constructors for messages, rhw_lengths, how many fields each has, and rhw_dtypes, names of element types.
#ifndef RHW_NATIVE_H
#define RHW_NATIVE_H

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An object: a tensor of rank `size` and element type `tag`, or `size` fields; data have a constructor as `tag`, functions
 * a function. No element type is a constructor's number, and tuples and references have RHW_NO_TAG. */
#define RHW_NO_TAG UINT32_MAX
enum { RHW_TENSOR, RHW_TUPLE, RHW_DATA, RHW_FUNCTION, RHW_REF };
typedef struct rhw_value { uint32_t count; uint8_t kind, is_large; uint16_t unused; uint32_t tag, size; } rhw_value;

/* An element type: its number in values.py, and its bytes from bit 8 on. */
#define RHW_WIDTH(tag) ((size_t)(tag) >> 8)

#define RHW_CHUNK ((size_t)1 << 18)
#define RHW_SMALL 4096
/* Stack that is used before a new one is taken, its size, and what is left of it for others' functions. */
#define RHW_FIRST_STACK ((size_t)1 << 16)
#define RHW_STACK ((size_t)1 << 26)
#define RHW_STACK_LEFT ((size_t)1 << 20)
#define RHW_MOST_DEEP 200000

typedef struct rhw_chunk { struct rhw_chunk *next; size_t unused; } rhw_chunk;
typedef struct rhw_large { struct rhw_large *next, **link; size_t bytes, unused; } rhw_large;
/* Answers call `number`, whose arguments are in the stream of `self`'s run; the result takes their place. Returns 0. */
typedef int (*rhw_answer)(void *self, int32_t number);

typedef struct rhw_run {
    rhw_chunk *chunks, *chunk;
    char *at, *end;
    rhw_large *large;
    rhw_value *free_by_size[RHW_SMALL / 16 + 1];
    rhw_value **constants, **stack, **order;
    size_t constant_count, stack_room, order_room;
    int64_t *stream;
    size_t stream_words, stream_room;
    size_t bytes, most_bytes;
    uintptr_t lowest;
    uint32_t depth;
    int is_input; /* whether the error is the input's, not the program's */
    jmp_buf *jump;
    rhw_answer answer;
    void *self;
    uint32_t next_function, next_count;
    rhw_value *next_args[RHW_MOST_ARGS];
    char error[256];
} rhw_run;

static inline rhw_value **rhw_fields(rhw_value *v) { return (rhw_value **)(v + 1); }
/* How many elements a tensor has, then its dimensions. */
static inline int64_t *rhw_sizes(rhw_value *v) { return (int64_t *)(v + 1); }
static inline size_t rhw_data_at(uint32_t rank) { return (sizeof(rhw_value) + 8 * ((size_t)rank + 1) + 15) & ~(size_t)15; }
static inline void *rhw_data(rhw_value *v) { return (char *)v + rhw_data_at(v->size); }

#if defined(__GNUC__)
#define RHW_NORETURN __attribute__((noreturn))
#define RHW_NOINLINE __attribute__((noinline, unused))
#define RHW_RARE(x) __builtin_expect(!!(x), 0)
#else
#define RHW_NORETURN
#define RHW_NOINLINE
#define RHW_RARE(x) (x)
#endif

static RHW_NOINLINE RHW_NORETURN void rhw_fail(rhw_run *r, const char *message) {
    if (message != r->error) snprintf(r->error, sizeof r->error, "%s", message);
    longjmp(*r->jump, 1);
}

static RHW_NOINLINE RHW_NORETURN void rhw_no_memory(rhw_run *r, size_t bytes) {
    snprintf(r->error, sizeof r->error, "memory must have room for %lu bytes more", (unsigned long)bytes);
    rhw_fail(r, r->error);
}

/* Memory: small objects come from chunks and go to a list of their size; large ones are malloc's. All end with the run. */

static inline void rhw_count_bytes(rhw_run *r, size_t bytes) {
    r->bytes += bytes;
    if (r->bytes > r->most_bytes) r->most_bytes = r->bytes;
}

static RHW_NOINLINE void *rhw_from_chunk(rhw_run *r, size_t bytes) {
    rhw_chunk *next = r->chunk ? r->chunk->next : r->chunks;
    if (!next) {
        next = malloc(RHW_CHUNK);
        if (!next) rhw_no_memory(r, RHW_CHUNK);
        next->next = NULL;
        if (r->chunk) r->chunk->next = next;
        else r->chunks = next;
    }
    rhw_count_bytes(r, RHW_CHUNK);
    r->chunk = next;
    r->at = (char *)(next + 1) + bytes;
    r->end = (char *)next + RHW_CHUNK;
    return r->at - bytes;
}

static RHW_NOINLINE rhw_value *rhw_new_large(rhw_run *r, size_t bytes) {
    rhw_large *large = malloc(sizeof *large + bytes);
    if (!large) rhw_no_memory(r, bytes);
    large->bytes = bytes;
    large->next = r->large;
    large->link = &r->large;
    if (large->next) large->next->link = &large->next;
    r->large = large;
    rhw_count_bytes(r, bytes);
    return (rhw_value *)(large + 1);
}

static inline rhw_value *rhw_new(rhw_run *r, uint8_t kind, uint32_t tag, uint32_t size, size_t bytes) {
    rhw_value *v;
    bytes = (bytes + 15) & ~(size_t)15;
    if (RHW_RARE(bytes > RHW_SMALL)) v = rhw_new_large(r, bytes);
    else if ((v = r->free_by_size[bytes / 16]) != NULL) memcpy(&r->free_by_size[bytes / 16], (void *)v, sizeof(rhw_value *));
    else if (RHW_RARE((size_t)(r->end - r->at) < bytes)) v = rhw_from_chunk(r, bytes);
    else {
        v = (rhw_value *)r->at;
        r->at += bytes;
    }
    v->count = 1;
    v->kind = kind;
    v->is_large = bytes > RHW_SMALL;
    v->tag = tag;
    v->size = size;
    return v;
}

static inline rhw_value *rhw_new_fields(rhw_run *r, uint8_t kind, uint32_t tag, uint32_t size) {
    return rhw_new(r, kind, tag, size, sizeof(rhw_value) + sizeof(rhw_value *) * size);
}

static inline rhw_value *rhw_new_tensor(rhw_run *r, uint32_t tag, uint32_t rank, int64_t elements) {
    rhw_value *v = rhw_new(r, RHW_TENSOR, tag, rank, rhw_data_at(rank) + (size_t)elements * RHW_WIDTH(tag));
    rhw_sizes(v)[0] = elements;
    return v;
}

static inline void rhw_release(rhw_run *r, rhw_value *v) {
    size_t bytes = v->kind == RHW_TENSOR ? rhw_data_at(v->size) + (size_t)rhw_sizes(v)[0] * RHW_WIDTH(v->tag)
                                         : sizeof *v + sizeof(rhw_value *) * v->size;
    bytes = (bytes + 15) & ~(size_t)15;
    if (v->is_large) {
        rhw_large *large = (rhw_large *)v - 1;
        r->bytes -= large->bytes;
        *large->link = large->next;
        if (large->next) large->next->link = large->link;
        free(large);
    } else {
        memcpy((void *)v, &r->free_by_size[bytes / 16], sizeof(rhw_value *));
        r->free_by_size[bytes / 16] = v;
    }
}

static inline void rhw_need_stack(rhw_run *r, size_t room) {
    if (RHW_RARE(room > r->stack_room)) {
        rhw_value **wider = realloc(r->stack, 2 * room * sizeof *wider);
        if (!wider) rhw_no_memory(r, 2 * room * sizeof *wider);
        r->stack = wider;
        r->stack_room = 2 * room;
    }
}

/* Frees an object that nobody holds, and what only it holds, without recursion. */
static RHW_NOINLINE void rhw_free(rhw_run *r, rhw_value *v) {
    size_t waiting = 0;
    for (;;) {
        if (v->kind != RHW_TENSOR) {
            uint32_t k;
            rhw_need_stack(r, waiting + v->size);
            for (k = 0; k < v->size; k++)
                if (--rhw_fields(v)[k]->count == 0) r->stack[waiting++] = rhw_fields(v)[k];
        }
        rhw_release(r, v);
        if (!waiting) return;
        v = r->stack[--waiting];
    }
}

static inline void rhw_drop(rhw_run *r, rhw_value *v) {
    if (--v->count == 0) rhw_free(r, v);
}

static inline rhw_value *rhw_keep(rhw_value *v) {
    v->count++;
    return v;
}

/* A field; what a stream brought in may be of other types than the program says. */
static inline rhw_value *rhw_at(rhw_run *r, rhw_value *v, uint32_t index) {
    if (RHW_RARE(v->kind == RHW_TENSOR || index >= v->size)) rhw_fail(r, "a value must be of the type that the program says");
    return rhw_fields(v)[index];
}

static inline rhw_value *rhw_field(rhw_run *r, rhw_value *v, uint32_t index) { return rhw_keep(rhw_at(r, v, index)); }

static inline void rhw_write(rhw_run *r, rhw_value *ref, rhw_value *value) {
    rhw_value *old = rhw_at(r, ref, 0);
    rhw_fields(ref)[0] = value;
    rhw_drop(r, old);
}

/* The elements of a tensor whose type the program says. */
static inline void *rhw_read(rhw_run *r, rhw_value *v, uint32_t tag, int64_t elements) {
    if (RHW_RARE(v->kind != RHW_TENSOR || v->tag != tag)) rhw_fail(r, "a value must be of the type that the program says");
    if (RHW_RARE(rhw_sizes(v)[0] != elements)) {
        snprintf(r->error, sizeof r->error, "a tensor must have %ld elements here, not %ld", (long)elements, (long)rhw_sizes(v)[0]);
        rhw_fail(r, r->error);
    }
    return rhw_data(v);
}

static inline const char *rhw_dtype(const rhw_value *v) {
    const uint32_t number = v->tag & 255;
    return number < sizeof rhw_dtypes / sizeof *rhw_dtypes ? rhw_dtypes[number] : "another type";
}

/* A value in words, as interp/values.py says it, after `at` letters of r->error. Returns how many there are then. */
static size_t rhw_show(rhw_run *r, size_t at, rhw_value *v) {
    const size_t room = sizeof r->error - at;
    uint32_t k;
    if (room < 64) return at;
    if (v->kind == RHW_DATA) return at + (size_t)snprintf(r->error + at, room, "%.60s", rhw_names[v->tag]);
    if (v->kind == RHW_REF) return at + (size_t)snprintf(r->error + at, room, "a reference");
    if (v->kind == RHW_FUNCTION) return at + (size_t)snprintf(r->error + at, room, "a function");
    if (v->kind == RHW_TENSOR) {
        if (!v->size) return at + (size_t)snprintf(r->error + at, room, "%s", rhw_dtype(v));
        at += (size_t)snprintf(r->error + at, room, "Tensor[(");
        for (k = 0; k < v->size && sizeof r->error - at > 64; k++)
            at += (size_t)snprintf(r->error + at, 32, k ? ", %ld" : "%ld", (long)rhw_sizes(v)[k + 1]);
        return at + (size_t)snprintf(r->error + at, sizeof r->error - at, "), %s]", rhw_dtype(v));
    }
    r->error[at++] = '(';
    for (k = 0; k < v->size && k < 8; k++) {
        if (k && sizeof r->error - at > 64) at += (size_t)snprintf(r->error + at, 4, ", ");
        at = rhw_show(r, at, rhw_fields(v)[k]);
    }
    return at + (size_t)snprintf(r->error + at, sizeof r->error - at, v->size > 8 ? ", ...)" : ")");
}

static RHW_NOINLINE RHW_NORETURN void rhw_no_arm(rhw_run *r, rhw_value *v) {
    rhw_show(r, (size_t)snprintf(r->error, sizeof r->error, "match must have an arm for "), v);
    rhw_fail(r, r->error);
}

/* Refuses NaN and infinity in a tensor of floats that is about to be quantized; `what` names it. */
static RHW_NOINLINE void rhw_check(rhw_run *r, rhw_value *v, const char *what) {
    const size_t width = RHW_WIDTH(v->tag), count = (size_t)rhw_sizes(v)[0];
    const uint64_t exponent = width == 2 ? 0x7C00u : width == 4 ? 0x7F800000u : UINT64_C(0x7FF) << 52, sign = UINT64_C(1) << (8 * width - 1);
    char index[96] = "";
    size_t i, k, used = 0, rest = count;
    for (i = 0; i < count; i++) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)rhw_data(v) + i * width, width);
        if ((bits & exponent) == exponent) {
            const char *kind = (bits & ~sign) != exponent ? "NaN" : bits & sign ? "-infinity" : "infinity";
            for (k = 0; k < v->size && used < sizeof index - 24; i %= rest, k++)
                used += (size_t)snprintf(index + used, 24, k ? ", %lu" : "%lu", (unsigned long)(i / (rest /= (size_t)rhw_sizes(v)[k + 1])));
            snprintf(r->error, sizeof r->error, v->size == 1 ? "%.100s must hold finite numbers, not %s (index %s)"
                     : "%.100s must hold finite numbers, not %s (index (%s))", what, kind, index);
            r->is_input = 1;
            rhw_fail(r, r->error);
        }
    }
}

/* Calls: a call that its caller makes in the place of the function that it called; calls that need a new stack. */

static rhw_value rhw_postponed;
typedef rhw_value *(*rhw_entry)(rhw_run *r, rhw_value **args);
static rhw_value *rhw_enter(rhw_run *r, uint32_t function, rhw_value **args);

static inline rhw_value *rhw_postpone(rhw_run *r, uint32_t function, uint32_t count) {
    r->next_function = function;
    r->next_count = count;
    return &rhw_postponed;
}

static inline rhw_value *rhw_finish(rhw_run *r, rhw_value *v) {
    while (v == &rhw_postponed) {
        rhw_value *args[RHW_MOST_ARGS];
        memcpy(args, r->next_args, r->next_count * sizeof *args);
        v = rhw_enter(r, r->next_function, args);
    }
    return v;
}

/* A function object's captured values in `all`, before the arguments that are there; it is dropped. Returns the number of both. */
static inline uint32_t rhw_open_function(rhw_run *r, rhw_value *callee, rhw_value **all, rhw_value **args, uint32_t count) {
    uint32_t k, held = callee->size;
    if (RHW_RARE(callee->kind != RHW_FUNCTION)) rhw_fail(r, "called value must be a function");
    for (k = 0; k < held; k++) all[k] = rhw_keep(rhw_fields(callee)[k]);
    memcpy(all + held, args, count * sizeof *args);
    rhw_drop(r, callee);
    return held + count;
}

static RHW_NOINLINE rhw_value *rhw_apply(rhw_run *r, rhw_value *callee, rhw_value **args, uint32_t count) {
    rhw_value *all[RHW_MOST_ARGS];
    const uint32_t function = callee->tag;
    rhw_open_function(r, callee, all, args, count);
    return rhw_finish(r, rhw_enter(r, function, all));
}

static RHW_NOINLINE rhw_value *rhw_postpone_apply(rhw_run *r, rhw_value *callee, rhw_value **args, uint32_t count) {
    const uint32_t function = callee->tag;
    return rhw_postpone(r, function, rhw_open_function(r, callee, r->next_args, args, count));
}

static inline int rhw_is_low(const rhw_run *r) {
#if defined(__GNUC__)
    return RHW_RARE((uintptr_t)__builtin_frame_address(0) < r->lowest);
#else
    volatile char here;
    return (uintptr_t)&here < r->lowest;
#endif
}

static inline void rhw_go_deeper(rhw_run *r) {
    if (RHW_RARE(++r->depth > RHW_MOST_DEEP)) {
        snprintf(r->error, sizeof r->error, "calls must be nested at most %d deep", RHW_MOST_DEEP);
        rhw_fail(r, r->error);
    }
}

typedef struct { rhw_run *r; void (*function)(void *); void *args; int failed; } rhw_hop;

static RHW_NOINLINE void *rhw_hopped(void *given) {
    rhw_hop *hop = given;
    volatile char here = 0;
    jmp_buf jump;
    hop->r->lowest = (uintptr_t)&here - (RHW_STACK - RHW_STACK_LEFT);
    hop->r->jump = &jump;
    if (setjmp(jump)) hop->failed = 1;
    else hop->function(hop->args);
    return NULL;
}

/* Calls a function on a new stack: a thread that is waited for. */
static RHW_NOINLINE void rhw_on_new_stack(rhw_run *r, void (*function)(void *), void *args) {
    rhw_hop hop = {r, function, args, 0};
    const uintptr_t lowest = r->lowest;
    jmp_buf *jump = r->jump;
    pthread_attr_t attributes;
    pthread_t thread;
    int status = pthread_attr_init(&attributes);
    if (!status) {
        status = pthread_attr_setstacksize(&attributes, RHW_STACK);
        if (!status) status = pthread_create(&thread, &attributes, rhw_hopped, &hop);
        pthread_attr_destroy(&attributes);
    }
    if (status) rhw_no_memory(r, RHW_STACK);
    pthread_join(thread, NULL);
    r->lowest = lowest;
    r->jump = jump;
    if (hop.failed) rhw_fail(r, r->error);
}

#endif
