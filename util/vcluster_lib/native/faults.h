/* What the three parts of fault injection agree on: the program in the kernel (faults.bpf.c), the delay
   queue (delay_queue.cc), and faults.py, which writes the settings and reads the counts. Plain C, fixed
   widths, no padding; faults.py packs the same fields in the same order. A share is given as N of 2^32; 2^32
   is always. */
#ifndef VCLUSTER_FAULTS_H
#define VCLUSTER_FAULTS_H

#include <linux/types.h>

#define FAULT_ONLY_UDP 1       /* on IP, or under the EtherType of the provider */
#define FAULT_ONLY_ETHERTYPE 2 /* that alone */
#define PROVIDER_ETHERTYPE 0x88b5

struct fault_settings {
  __u64 loss;      /* share of frames with which a run of losses begins */
  __u64 burst;     /* how many frames each run takes */
  __u64 duplicate; /* share that passes twice */
  __u64 corrupt;   /* share in which one bit is turned over */
  __u64 reorder;   /* share that waits longer by reorder_ns, and so is overtaken */
  __u64 reorder_ns;
  __u64 delay_ns;  /* every frame waits so long ... */
  __u64 jitter_ns; /* ... give or take so much */
  __u64 only;      /* nothing happens to other traffic: FAULT_ONLY_... */
  __u64 ingress;   /* the program stands where frames enter the switch */
  __u64 whole;     /* the place is only shaped: super-frames stay whole */
  __u64 cutter;    /* index of the interface through which super-frames are cut */
};

struct fault_counts {
  __u64 seen;
  __u64 lost;
  __u64 duplicated;
  __u64 corrupted;
  __u64 reordered;
  __u64 delayed;
  __u64 overrun;        /* should have been delayed, but the ring to the delay queue was full: lost */
  __u64 longest_gap_ns; /* between two frames, before any fault: a stall shows here */
  __u64 burst_left;
  __u64 last_ns; /* when the latest frame came */
};

/* The ring to the delay queue: some 4000 full frames, what comes while the process there is not scheduled. */
#define WAITING_BYTES (8 << 20)

/* In front of each frame in the ring to the delay queue. */
struct held_frame {
  __u64 due_ns; /* CLOCK_MONOTONIC */
  __u64 length;
};

/* skb->mark of frames on their way through the cutter and after it: the interface at which they go on, and
   whether they come from its node. Interfaces have indices below 2^24. */
#define CUT_MARK(interface, ingress) ((interface) << 1 | (ingress))

/* skb->mark of frames that had their turn, so that nothing happens to them twice at the same place. A mark
   does not cross into a node. */
#define FAULT_MARK_EGRESS 0x56430001u
#define FAULT_MARK_INGRESS 0x56430002u

#endif
