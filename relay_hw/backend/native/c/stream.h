// Values as streams of words, by which they enter and leave compiled programs; and the run of an entry.
#ifndef RHW_STREAM_H
#define RHW_STREAM_H

#include "native.h"

/* A stream holds values in postfix order: RHW_TENSOR, element type, rank, dimensions, elements in whole words;
 * RHW_TUPLE, fields; RHW_DATA, constructor, fields. */

static int64_t *rhw_room(rhw_run *r, size_t words) {
    if (r->stream_words + words > r->stream_room) {
        const size_t room = 2 * (r->stream_words + words);
        int64_t *wider = realloc(r->stream, room * sizeof *wider);
        if (!wider) rhw_no_memory(r, room * sizeof *wider);
        r->stream = wider;
        r->stream_room = room;
    }
    r->stream_words += words;
    return r->stream + r->stream_words - words;
}

static RHW_NOINLINE RHW_NORETURN void rhw_damaged(rhw_run *r) { rhw_fail(r, "a stream must hold whole values of the program's types"); }

static rhw_value *rhw_decode_tensor(rhw_run *r, const int64_t **at, const int64_t *end) {
    const int64_t *words = *at;
    const uint64_t room = 8 * (uint64_t)(end - words);
    uint64_t bytes;
    uint32_t tag, rank, k;
    int64_t elements = 1;
    rhw_value *v;
    if (end - words < 3 || words[1] < 256 || words[1] >> 16 || words[2] < 0 || words[2] > 32 || end - words - 3 < words[2]) rhw_damaged(r);
    tag = (uint32_t)words[1];
    rank = (uint32_t)words[2];
    for (k = 0; k < rank; k++) {
        const int64_t size = words[3 + k];
        if (size < 0 || (size && elements > (int64_t)(UINT64_C(1) << 60) / size)) rhw_damaged(r);
        elements *= size;
    }
    if ((uint64_t)elements > room) rhw_damaged(r);
    bytes = (uint64_t)elements * RHW_WIDTH(tag);
    if ((bytes + 7) / 8 > (uint64_t)(end - words - 3 - rank)) rhw_damaged(r);
    v = rhw_new_tensor(r, tag, rank, elements);
    memcpy(rhw_sizes(v) + 1, words + 3, 8 * (size_t)rank);
    memcpy(rhw_data(v), words + 3 + rank, bytes);
    *at = words + 3 + rank + (bytes + 7) / 8;
    return v;
}

/* The values of the stream, on r->stack. Returns how many. */
static size_t rhw_decode(rhw_run *r) {
    const int64_t *at = r->stream, *end = r->stream + r->stream_words;
    size_t count = 0;
    while (at < end) {
        rhw_value *v;
        rhw_need_stack(r, count + 1);
        if (*at == RHW_TENSOR) v = rhw_decode_tensor(r, &at, end);
        else {
            const int is_data = *at == RHW_DATA;
            uint32_t size;
            if (end - at < 2 + is_data || (!is_data && *at != RHW_TUPLE)) rhw_damaged(r);
            if (is_data && (at[1] < 0 || at[1] >= RHW_CONSTRUCTORS || at[2] != rhw_lengths[at[1]])) rhw_damaged(r);
            if (at[1 + is_data] < 0 || (uint64_t)at[1 + is_data] > count) rhw_damaged(r);
            size = (uint32_t)at[1 + is_data];
            v = rhw_new_fields(r, (uint8_t)*at, is_data ? (uint32_t)at[1] : RHW_NO_TAG, size);
            count -= size;
            memcpy(rhw_fields(v), r->stack + count, size * sizeof v);
            at += 2 + is_data;
        }
        r->stack[count++] = v;
    }
    return count;
}

static void rhw_encode_one(rhw_run *r, rhw_value *v) {
    int64_t *words;
    switch (v->kind) {
    case RHW_TENSOR: {
        const size_t bytes = (size_t)rhw_sizes(v)[0] * RHW_WIDTH(v->tag), whole = (bytes + 7) / 8;
        words = rhw_room(r, 3 + v->size + whole);
        words[0] = RHW_TENSOR;
        words[1] = v->tag;
        words[2] = v->size;
        memcpy(words + 3, rhw_sizes(v) + 1, 8 * (size_t)v->size);
        if (whole) words[3 + v->size + whole - 1] = 0;
        memcpy(words + 3 + v->size, rhw_data(v), bytes);
        return;
    }
    case RHW_DATA:
        words = rhw_room(r, 3);
        words[0] = RHW_DATA;
        words[1] = v->tag;
        words[2] = v->size;
        return;
    case RHW_TUPLE:
        words = rhw_room(r, 2);
        words[0] = RHW_TUPLE;
        words[1] = v->size;
        return;
    default:
        rhw_fail(r, v->kind == RHW_REF ? "a result must be tensors, tuples and data, not hold a reference"
                                       : "a result must be tensors, tuples and data, not hold a function");
    }
}

/* Adds a value to the stream: its parts are put in order, root first, then its last field, and written from the end. */
static void rhw_encode(rhw_run *r, rhw_value *v) {
    size_t waiting = 1, count = 0;
    rhw_need_stack(r, 1);
    r->stack[0] = v;
    while (waiting) {
        rhw_value *one = r->stack[--waiting];
        if (count == r->order_room) {
            rhw_value **wider = realloc(r->order, (2 * count + 64) * sizeof *wider);
            if (!wider) rhw_no_memory(r, (2 * count + 64) * sizeof *wider);
            r->order = wider;
            r->order_room = 2 * count + 64;
        }
        r->order[count++] = one;
        if (one->kind == RHW_TENSOR) continue;
        rhw_need_stack(r, waiting + one->size);
        memcpy(r->stack + waiting, rhw_fields(one), one->size * sizeof one);
        waiting += one->size;
    }
    while (count) rhw_encode_one(r, r->order[--count]);
}

/* Makes room for `words` words as the whole stream: the caller fills it. NULL where there is none. */
int64_t *rhw_native_stream(rhw_run *r, size_t words) {
    jmp_buf jump, *outer = r->jump;
    int64_t *found = NULL;
    r->jump = &jump;
    r->stream_words = 0;
    if (!setjmp(jump)) found = rhw_room(r, words);
    r->jump = outer;
    return found;
}

static void rhw_clear(rhw_run *r) {
    while (r->large) {
        rhw_large *next = r->large->next;
        free(r->large);
        r->large = next;
    }
    memset(r->free_by_size, 0, sizeof r->free_by_size);
    r->chunk = NULL;
    r->at = r->end = NULL;
    r->bytes = 0;
    r->depth = 0;
}

/* Runs function `number` on the values of the stream, whose result takes their place. Returns 0, or -1 with r->error. */
int rhw_native_call(rhw_run *r, uint32_t number) {
    volatile char here = 0;
    volatile int status = -1;
    jmp_buf jump;
    r->lowest = (uintptr_t)&here - RHW_FIRST_STACK;
    r->jump = &jump;
    r->most_bytes = 0;
    r->is_input = 0;
    if (!setjmp(jump)) {
        rhw_value *args[RHW_MOST_ARGS], *result;
        const size_t count = rhw_decode(r);
        memcpy(args, r->stack, count * sizeof *args);
        result = rhw_finish(r, rhw_enter(r, number, args));
        r->stream_words = 0;
        rhw_encode(r, result);
        status = 0;
    }
    rhw_clear(r);
    return status;
}

void rhw_native_close(rhw_run *r) {
    size_t k;
    rhw_clear(r);
    while (r->chunks) {
        rhw_chunk *next = r->chunks->next;
        free(r->chunks);
        r->chunks = next;
    }
    for (k = 0; k < r->constant_count; k++) free(r->constants[k]);
    free(r->constants);
    free(r->stack);
    free(r->order);
    free(r->stream);
    free(r);
}

/* A new run, whose constants are the tensors of the stream: they stay until it is closed. NULL without memory. */
rhw_run *rhw_native_open(rhw_answer answer, void *self) {
    rhw_run *r = calloc(1, sizeof *r);
    if (r) {
        r->answer = answer;
        r->self = self;
    }
    return r;
}

int rhw_native_keep_constants(rhw_run *r) {
    volatile int status = -1;
    jmp_buf jump;
    r->jump = &jump;
    if (!setjmp(jump)) {
        const size_t count = rhw_decode(r);
        r->constants = calloc(count + 1, sizeof *r->constants);
        if (!r->constants) rhw_no_memory(r, count);
        for (; r->constant_count < count; r->constant_count++) {
            rhw_value *v = r->stack[r->constant_count];
            const size_t bytes = rhw_data_at(v->size) + (size_t)rhw_sizes(v)[0] * RHW_WIDTH(v->tag);
            rhw_value *copy = malloc(bytes);
            if (!copy) rhw_no_memory(r, bytes);
            memcpy(copy, v, bytes);
            copy->is_large = 0;
            r->constants[r->constant_count] = copy;
        }
        status = 0;
    }
    rhw_clear(r);
    return status;
}

int rhw_native_is_input(const rhw_run *r) { return r->is_input; }
const char *rhw_native_error(const rhw_run *r) { return r->error; }
int64_t *rhw_native_result(rhw_run *r, uint64_t *words) {
    *words = r->stream_words;
    return r->stream;
}
uint64_t rhw_native_most_bytes(const rhw_run *r) { return r->most_bytes; }
void rhw_native_refuse(rhw_run *r, const char *message) { snprintf(r->error, sizeof r->error, "%s", message); }

#endif
