/* Stretto's public C interface. The functions are exported by every preload library; a program that wants them looks
 * them up with dlsym, so that it runs without Stretto too. */
#ifndef STRETTO_STRETTO_H
#define STRETTO_STRETTO_H

#ifdef __cplusplus
extern "C" {
#endif

#define STRETTO_VERSION "0.1.0"

/* The version of the loaded library, e.g. "0.1.0". */
const char* stretto_version(void);

/* The settings table, one line each: name TAB type TAB default TAB help. Static storage. */
const char* stretto_settings(void);

/* Whether this process's collectives can be accelerated at present: 1 yes, 0 no. *why (when not null) receives a static
 * string that says why, in words. Meaningful between MPI_Init and MPI_Finalize. */
int stretto_accelerating(const char** why);

/* How algorithms are chosen: for `stretto tune`, and for whoever measures. A rules file is explained in src/select/rules.hpp. */

/* Every algorithm, one line each: collective TAB name TAB largest vector in bytes; TAB "nodes" where it is for communicators that
 * span nodes. Static storage. */
const char* stretto_algorithms(void);

/* The built-in rules, as the text of a rules file. Static storage. */
const char* stretto_default_rules(void);

/* Where measured rules for this machine and MPI library belong (empty: there is no home folder), the line that such a file begins
 * with, and machine and library in words. Static storage. Returns 0. */
int stretto_tuning(const char** path, const char** header, const char** about);

/* Communicators whose first collective is yet to come choose by these rules (the text of a rules file; null: the job's own).
 * All ranks must call it alike, and none at the same time as a collective. Returns 0, the number of the line that does not read,
 * or -1. */
int stretto_next_rules(const char* text);

/* Which algorithm runs, and by which line of these rules (null: the built-in ones), on this CPU. Looks at no job. */
typedef struct {
  const char* collective; /* "allreduce" */
  unsigned long long bytes;
  int ranks;
  int crowded;         /* ranks outnumber the CPUs allowed to them */
  int arena;           /* every rank has mapped the arenas of all */
  const char* library; /* the MPI: "openmpi", "mpich", "intelmpi" or "other"; null: other */
  int fresh;           /* what rules say of a communicator's first calls; line 0 where they say nothing */
  int nodes;           /* over which the ranks are spread, as evenly as can be; 0: 1 */
} stretto_question;

/* *algorithm: its name, or "mpi"; *line: of the rule, 0 where none holds. Returns 0; 1: the rules do not read, in *line (0: as a
 * whole), and *algorithm says why, in words; 2: MPI does it though a rule says otherwise (*line, or 0: whatever they say), and
 * *algorithm says why; -1: there is no such collective or library. */
int stretto_explain(const char* rules, const stretto_question* question, const char** algorithm, int* line);

#ifdef __cplusplus
}
#endif
#endif
