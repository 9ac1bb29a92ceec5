#!/bin/sh
# Start of a bus in a container: sh start.sh PROGRAM ARGUMENTS...
#
# nats-server writes the states of its consumers in place and does not synchronise them, so a cut of power
# may leave half of one. It then refuses to create the consumer, or reads the file for ever. Without the file
# it delivers again what was not acknowledged, which every service allows. So damaged ones are renamed first.
# The rules are those of services/standalone/svc_standalone/consumer_states.py, which does the same where
# there are no containers; here is nothing but what the image of nats-server has.
#
# Variable of the environment: NNI_NATS_STORE (folder).
set -eu

# is_readable FILE: nats-server can read the state of a consumer. An empty one is a new consumer.
is_readable() {
    od -A n -v -t u1 "$1" | awk '
        # Bytes 22 and version, then integers of variable length: 7 bits of each byte, lowest first.
        {
            for (field = 1; field <= NF; field++) {
                bytes++
                if (bytes == 1) { if ($field != 22) wrong = 1 }
                else if (bytes == 2) { version = $field; if (version != 1 && version != 2) wrong = 1 }
                else {
                    length_of_number++
                    if (length_of_number > 10) wrong = 1
                    value += ($field % 128) * unit
                    unit *= 128
                    if ($field < 128) {
                        numbers++
                        if (numbers == 5) pending = value
                        length_of_number = 0; value = 0; unit = 1
                    }
                }
            }
        }
        BEGIN { unit = 1 }
        # Four positions; then the number of pending messages, a time for all of them, and of each its
        # sequence, time and, since version 2, the sequence of the consumer.
        END {
            if (bytes == 0) exit 0
            if (wrong || bytes < 2 || length_of_number || numbers < 4) exit 1
            exit (pending > 0 && numbers < 6 + pending * (1 + version))
        }'
}

for state in "$NNI_NATS_STORE"/jetstream/*/streams/*/obs/*/o.dat; do
    # What cannot be read, nats-server names itself.
    [ -r "$state" ] && ! is_readable "$state" || continue
    place=$state.damaged-$(date +%s)
    if mv "$state" "$place"; then
        echo "$state is no state of a consumer: moved to $place; messages are delivered again" >&2
    fi
done
exec "$@"
