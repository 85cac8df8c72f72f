/* What happens to a frame at one port of the switch, in one direction.

   Attached by `tc filter ... bpf direct-action` to a clsact of the port: egress is on the way to the node,
   ingress comes from it. Each attached program has maps of its own. Random numbers are drawn in the order loss,
   duplicate, corrupt, delay; a frame that has to wait is copied to the delay queue, a process, and dropped
   here, since a classifier can hold nothing. Loss, duplicates and damage never leave the kernel.

   Between virtual interfaces many frames travel as one super-frame, which would be lost as one. So all frames
   first take a turn through the cutter, a pair of interfaces in the switch of which the first takes no
   super-frames: the kernel cuts them in front of it. At the other end stands the second program here and
   sends the pieces back to their port. Small frames go the same way, or they would overtake. A port that is only
   shaped leaves super-frames whole: its shaper cuts those that it does not take at once, and the turn of each
   frame through the cutter would cost the machine more than the network that it plays. */
#include "faults.h"

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

static void* (*map_lookup)(void* map, const void* key) = (void*)BPF_FUNC_map_lookup_elem;
static __u32 (*random_number)(void) = (void*)BPF_FUNC_get_prandom_u32;
static __u64 (*monotonic_ns)(void) = (void*)BPF_FUNC_ktime_get_ns;
static long (*load_bytes)(const void* skb, __u32 at, void* to, __u32 size) = (void*)BPF_FUNC_skb_load_bytes;
static long (*store_bytes)(void* skb, __u32 at, const void* from, __u32 size,
                           __u64 flags) = (void*)BPF_FUNC_skb_store_bytes;
static long (*clone_redirect)(void* skb, __u32 interface, __u64 flags) = (void*)BPF_FUNC_clone_redirect;
static long (*redirect)(__u32 interface, __u64 flags) = (void*)BPF_FUNC_redirect;
static void* (*ring_reserve)(void* ring, __u64 size, __u64 flags) = (void*)BPF_FUNC_ringbuf_reserve;
static void (*ring_submit)(void* record, __u64 flags) = (void*)BPF_FUNC_ringbuf_submit;
static void (*ring_discard)(void* record, __u64 flags) = (void*)BPF_FUNC_ringbuf_discard;

struct {
  int (*type)[BPF_MAP_TYPE_ARRAY];
  int (*max_entries)[1];
  __u32* key;
  struct fault_settings* value;
} settings_map SEC(".maps");

struct {
  int (*type)[BPF_MAP_TYPE_ARRAY];
  int (*max_entries)[1];
  __u32* key;
  struct fault_counts* value;
} counts_map SEC(".maps");

struct {
  int (*type)[BPF_MAP_TYPE_RINGBUF];
  int (*max_entries)[WAITING_BYTES];
} waiting_map SEC(".maps");

INLINE void count(__u64* counter) { __sync_fetch_and_add(counter, 1); }

INLINE int happens(__u64 share) { return share != 0 && random_number() < share; }

INLINE int is_ethertype(const struct __sk_buff* skb) {
  return skb->protocol == __builtin_bswap16(PROVIDER_ETHERTYPE);
}

INLINE int is_udp(struct __sk_buff* skb) {
  __u8 protocol = 0;
  if (skb->protocol == __builtin_bswap16(ETH_P_IP)) load_bytes(skb, ETH_HLEN + 9, &protocol, 1);
  if (skb->protocol == __builtin_bswap16(ETH_P_IPV6)) load_bytes(skb, ETH_HLEN + 6, &protocol, 1);
  return protocol == 17 || is_ethertype(skb);
}

INLINE int is_spared(struct __sk_buff* skb, __u64 only) {
  return (only == FAULT_ONLY_UDP && !is_udp(skb)) || (only == FAULT_ONLY_ETHERTYPE && !is_ethertype(skb));
}

INLINE void note_gap(struct fault_counts* counts, __u64 now) {
  const __u64 last = counts->last_ns;
  counts->last_ns = now;
  if (last != 0 && now > last && now - last > counts->longest_gap_ns) counts->longest_gap_ns = now - last;
}

INLINE int is_lost(const struct fault_settings* settings, struct fault_counts* counts) {
  if (counts->burst_left != 0) {
    counts->burst_left -= 1;
    return 1;
  }
  if (!happens(settings->loss)) return 0;
  counts->burst_left = settings->burst - 1;
  return 1;
}

/* The copy goes first: it bears the mark, the original goes on to further faults without. */
INLINE void duplicate(struct __sk_buff* skb, const struct fault_settings* settings) {
  const __u32 mark = skb->mark;
  skb->mark = settings->ingress ? FAULT_MARK_INGRESS : FAULT_MARK_EGRESS;
  clone_redirect(skb, skb->ifindex, settings->ingress ? BPF_F_INGRESS : 0);
  skb->mark = mark;
}

/* Behind the Ethernet header, so that the frame still finds the node whose checks are tested. */
INLINE int corrupt(struct __sk_buff* skb) {
  __u8 byte;
  __u32 at;
  if (skb->len <= ETH_HLEN) return 0;
  at = ETH_HLEN + random_number() % (skb->len - ETH_HLEN);
  if (load_bytes(skb, at, &byte, 1) != 0) return 0;
  byte ^= 1u << (random_number() % 8);
  return store_bytes(skb, at, &byte, 1, 0) == 0;
}

INLINE __u64 waiting_time(const struct fault_settings* settings, struct fault_counts* counts) {
  __u64 time = settings->delay_ns;
  const __u64 jitter = settings->jitter_ns;
  if (time != 0) count(&counts->delayed);
  if (jitter != 0) time = time - jitter + random_number() % (2 * jitter + 1);
  if (happens(settings->reorder)) {
    count(&counts->reordered);
    time += settings->reorder_ns;
  }
  return time;
}

/* A record of the ring has a size known beforehand; four sizes serve. */
#define HOLD_IN(size)                                                               \
  if (length <= (size)) {                                                           \
    struct held_frame* held = ring_reserve(&waiting_map, sizeof *held + (size), 0); \
    if (!held) return 0;                                                            \
    held->due_ns = due;                                                             \
    held->length = length;                                                          \
    if (load_bytes(skb, 0, held + 1, length) != 0) {                                \
      ring_discard(held, 0);                                                        \
      return 0;                                                                     \
    }                                                                               \
    ring_submit(held, 0);                                                           \
    return 1;                                                                       \
  }

static __attribute__((noinline)) int hold(struct __sk_buff* skb, __u64 due) {
  const __u32 length = skb->len;
  if (length == 0) return 0;
  HOLD_IN(496)
  HOLD_IN(2032)
  HOLD_IN(10224)
  HOLD_IN(65550)
  return 0;
}

SEC("tc")
int faults(struct __sk_buff* skb) {
  const __u32 first = 0;
  const struct fault_settings* settings = map_lookup(&settings_map, &first);
  struct fault_counts* counts = map_lookup(&counts_map, &first);
  __u64 time, now;
  if (!settings || !counts || settings->cutter == 0) return TC_ACT_UNSPEC; /* not yet written */
  if (skb->mark == (settings->ingress ? FAULT_MARK_INGRESS : FAULT_MARK_EGRESS)) return TC_ACT_UNSPEC;
  if (skb->mark != CUT_MARK(skb->ifindex, settings->ingress) && !settings->whole) {
    skb->mark = CUT_MARK(skb->ifindex, settings->ingress);
    return redirect(settings->cutter, 0);
  }
  if (is_spared(skb, settings->only)) return TC_ACT_UNSPEC;

  now = monotonic_ns();
  __sync_fetch_and_add(&counts->seen, skb->gso_segs > 1 ? skb->gso_segs : 1);
  note_gap(counts, now);
  if (is_lost(settings, counts)) {
    count(&counts->lost);
    return TC_ACT_SHOT;
  }
  if (happens(settings->duplicate)) {
    count(&counts->duplicated);
    duplicate(skb, settings);
  }
  if (happens(settings->corrupt) && corrupt(skb)) count(&counts->corrupted);
  time = waiting_time(settings, counts);
  if (time == 0) return TC_ACT_UNSPEC;
  if (!hold(skb, now + time)) count(&counts->overrun);
  return TC_ACT_SHOT;
}

SEC("tc/cut")
int cut(struct __sk_buff* skb) {
  if (skb->mark == 0) return TC_ACT_SHOT; /* not sent here by the program at a port */
  return redirect(skb->mark >> 1, skb->mark & 1 ? BPF_F_INGRESS : 0);
}

char program_license[] SEC("license") = "Dual BSD/GPL";
