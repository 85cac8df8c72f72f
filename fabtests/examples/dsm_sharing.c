/* What the programs of examples/dsm do not do: several processes write to one page at a time, up to its last word; a lock's
 * log wraps while a process is away, slowly and by one holder at once; all want one lock all the time; conditions and waits. Everything is compared. */
#include <stdint.h>
#include <stdio.h>

#include "dsm/dsm.h"

enum {
  kRanksMax = 16,
  kPages = 600,
  kShared = 32,
  kWords = 4096 / sizeof(uint64_t),
  kRounds = 4,
  kOwnWords = 5 * kWords,
  kTurns = 10
};
enum {
  kDataLock,
  kFlagLock,
  kCountLock
}; /* the flag has a lock of its own: waiting for it tells nothing of the data */

static uint64_t value_of(uint64_t round, size_t word) { return round << 32 | (word + 1); }

/* A third of the pages, of which every process writes each dsm_size()th word. The others keep what they had. */
static int share_pages(uint64_t* words, uint64_t round) {
  int wrong = 0;
  for (size_t i = (size_t)dsm_rank(); i < kShared * kWords; i += (size_t)dsm_size()) {
    if (i / kWords % 3 == round % 3) words[i] = value_of(round, i);
  }
  dsm_barrier();
  for (size_t i = 0; i < kShared * kWords; ++i) {
    const uint64_t since = (round + 3 - i / kWords % 3) % 3; /* rounds ago */
    wrong += words[i] != (since < round ? value_of(round - since, i) : 0);
  }
  dsm_barrier();
  return wrong;
}

/* All have copies of all pages. Process 1 writes to each, `pages_a_turn` under the lock at a time, more than the lock's log
 * names; the others come to the lock when it is done, with a word of their own in a page that they have to drop. */
static int fall_behind(uint64_t* words, uint64_t* flag, uint64_t round, size_t pages_a_turn) {
  int wrong = 0;
  for (size_t page = 0; page < kPages; ++page) wrong += words[page * kWords + kWords - 1] >> 32 == round;
  dsm_barrier();
  if (dsm_rank() == 1 % dsm_size()) {
    for (size_t page = 0; page < kPages;) {
      dsm_lock(kDataLock);
      for (size_t i = 0; i < pages_a_turn; ++i, ++page)
        words[page * kWords + kWords - 1] = value_of(round, page);
      dsm_unlock(kDataLock);
    }
    dsm_lock(kFlagLock);
    *flag = round;
    dsm_unlock(kFlagLock);
  }
  for (int done = 0; !done;) {
    dsm_lock(kFlagLock);
    done = *flag == round;
    dsm_unlock(kFlagLock);
  }
  words[kOwnWords + dsm_rank()] = value_of(round, kOwnWords);
  dsm_lock(kDataLock);
  for (size_t page = 0; page < kPages; ++page)
    wrong += words[page * kWords + kWords - 1] != value_of(round, page);
  dsm_unlock(kDataLock);
  dsm_barrier();
  for (int rank = 0; rank < dsm_size(); ++rank)
    wrong += words[kOwnWords + rank] != value_of(round, kOwnWords);
  return wrong;
}

/* All processes add to one word under one lock. */
static int count_together(uint64_t* count, uint64_t round) {
  for (int turn = 0; turn < kTurns; ++turn) {
    dsm_lock(kCountLock);
    ++*count;
    dsm_unlock(kCountLock);
  }
  dsm_barrier();
  const int wrong = *count != round * kTurns * (uint64_t)dsm_size();
  dsm_barrier();
  return wrong;
}

/* Each process waits for the one before it, reads its note, writes its own and sets the next condition. A note has a
 * page that nobody has read before: conditions and waits say when, and what is not there yet is fetched. */
static int pass_notes(uint64_t* notes, uint64_t round) {
  const int me = dsm_rank(), size = dsm_size();
  uint64_t* const of_round = notes + (round - 1) * kRanksMax * kWords;
  int wrong = 0;
  if (me > 0) dsm_wait_set(me);
  if (me > 0) wrong += of_round[(me - 1) * kWords] != value_of(round, (size_t)me - 1);
  of_round[me * kWords] = value_of(round, (size_t)me);
  if (me + 1 < size) dsm_set(me + 1);
  dsm_wait();
  const int other = (me + 2) % size;
  wrong += of_round[other * kWords] != value_of(round, (size_t)other);
  if (me > 0) dsm_reset(me);
  dsm_wait();
  return wrong;
}

int main(int argc, char** argv) {
  dsm_open(argc, argv, "Pages that several processes write to, and locks whose logs wrap.",
           (kPages + kShared + 2 + kRounds * kRanksMax) * 4096);
  uint64_t* const words = dsm_alloc(kPages * 4096, kPages * 4096, dsm_size() - 1);
  uint64_t* const shared = dsm_alloc(kShared * 4096, 4096, 0);
  uint64_t* const flag = dsm_alloc(sizeof *flag, sizeof *flag, 0);
  uint64_t* const count = dsm_alloc(sizeof *count, sizeof *count, 2);
  /* At the process that writes it. */
  uint64_t* notes = NULL;
  for (int round = 0; round < kRounds; ++round) {
    for (int rank = 0; rank < kRanksMax; ++rank) {
      uint64_t* const page = dsm_alloc(4096, 4096, rank % dsm_size());
      if (notes == NULL) notes = page;
    }
  }
  dsm_barrier();
  const double started = dsm_seconds();
  int wrong = 0;
  for (uint64_t round = 1; round <= kRounds; ++round) {
    wrong += share_pages(shared, round);
    wrong += fall_behind(words, flag, round, round % 2 == 0 ? 3 : kPages);
    wrong += count_together(count, round);
    wrong += pass_notes(notes, round);
  }
  dsm_report("dsm_sharing", dsm_seconds() - started, wrong);
  dsm_close();
  return wrong > 0;
}
