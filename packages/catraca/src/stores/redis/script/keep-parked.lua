-- States under rules that count otherwise stay in the value.
for index = 1, #parked do extras = extras .. struct.pack('<c1I4', 'P', #parked[index]) .. parked[index] end
